import java.io.File;
import java.io.FileOutputStream;
import java.util.Iterator;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.codehaus.janino.SimpleCompiler;

/** Compiles source files into a jar with the compiler that Spark brings: a machine that runs Java need not have javac. */
public class Build {
  public static void main(String[] arguments) throws Exception {
    ZipOutputStream jar = new ZipOutputStream(new FileOutputStream(arguments[0]));
    for (int i = 1; i < arguments.length; i++) {
      SimpleCompiler compiler = new SimpleCompiler();
      compiler.cookFile(new File(arguments[i]));
      for (Iterator each = compiler.getBytecodes().entrySet().iterator(); each.hasNext(); ) {
        Map.Entry one = (Map.Entry) each.next();
        jar.putNextEntry(new ZipEntry(((String) one.getKey()).replace('.', '/') + ".class"));
        jar.write((byte[]) one.getValue());
        jar.closeEntry();
      }
    }
    jar.close();
  }
}
