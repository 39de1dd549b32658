package penstock;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads the wanted members out of JSON records, several times as fast as Spark's from_json, which has to be able to do
 * much more. It reads only what leaves no doubt: a record that is one object by the letter of the grammar, in valid
 * UTF-8, whose wanted members have the JSON type of their columns, fit them, and come once. For any other record read()
 * returns null, and from_json, which alone says what is bad about a record, is asked.
 *
 * A TIMESTAMP is a number of milliseconds or a text in ISO 8601, a DATE the text of one.
 *
 * Janino compiles this file: no lambdas, no generics of its own.
 */
public final class QuickJson implements Serializable {
  private static final long serialVersionUID = 1L;

  private static final int LONG = 0;
  private static final int INT = 1;
  private static final int SHORT = 2;
  private static final int BYTE = 3;
  private static final int BOOLEAN = 4;
  private static final int DOUBLE = 5;
  private static final int STRING = 6;
  private static final int TIMESTAMP = 7;
  private static final int DATE = 8;
  private static final int DECIMAL = 9;
  private static final int STRUCT = 10;
  private static final int ARRAY = 11;
  private static final int MAP = 12;

  // Spark's parser has limits of its own for these, all of them larger.
  private static final int LONGEST_RECORD = 1 << 20;
  private static final int LONGEST_NUMBER = 500;
  private static final int DEEPEST = 100;
  private static final int MOST_COLUMNS = 64;
  private static final int MOST_DIGITS = 18; // as many as surely fit into a long

  private static final long LATEST_MILLIS = 253402300799999L; // the last moment of the year 9999
  private static final double[] TENS = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22
  };
  private static final long EXACT = 1L << 53; // whole numbers up to this are doubles

  /** What a value is that may be read in more than one way; a plain null is a JSON null. */
  private static final Object DOUBT = new Object();

  private final byte[][] names;
  private final int[] kinds;
  private final int[] precisions;
  private final int[] scales;
  private final QuickJson[] inner;

  /** The columns with Spark's types, as they are named in records. */
  public QuickJson(StructType columns) {
    StructField[] fields = columns.fields();
    int count = fields.length;
    if (count > MOST_COLUMNS) {
      throw new IllegalArgumentException("too many columns");
    }
    names = new byte[count][];
    kinds = new int[count];
    precisions = new int[count];
    scales = new int[count];
    inner = new QuickJson[count];
    for (int i = 0; i < count; i++) {
      names[i] = fields[i].name().getBytes(StandardCharsets.UTF_8);
      DataType type = fields[i].dataType();
      kinds[i] = kindOf(type);
      if (type instanceof DecimalType) {
        precisions[i] = ((DecimalType) type).precision();
        scales[i] = ((DecimalType) type).scale();
      } else if (type instanceof StructType) {
        inner[i] = new QuickJson((StructType) type);
      } else if (type instanceof ArrayType) {
        inner[i] = new QuickJson(alone(((ArrayType) type).elementType()));
      } else if (type instanceof MapType) {
        inner[i] = new QuickJson(alone(((MapType) type).valueType()));
      }
    }
  }

  /** The type of the items of an array or a map, as that of a column. */
  private static StructType alone(DataType type) {
    return new StructType().add("item", type);
  }

  private static int kindOf(DataType type) {
    if (type instanceof LongType) return LONG;
    if (type instanceof IntegerType) return INT;
    if (type instanceof ShortType) return SHORT;
    if (type instanceof ByteType) return BYTE;
    if (type instanceof BooleanType) return BOOLEAN;
    if (type instanceof DoubleType) return DOUBLE;
    if (type instanceof StringType) return STRING;
    if (type instanceof TimestampType) return TIMESTAMP;
    if (type instanceof DateType) return DATE;
    if (type instanceof DecimalType) return DECIMAL;
    if (type instanceof StructType) return STRUCT;
    if (type instanceof ArrayType) return ARRAY;
    if (type instanceof MapType && ((MapType) type).keyType() instanceof StringType) return MAP;
    throw new IllegalArgumentException("no such column: " + type);
  }

  /** The wanted members of a record, or null where there is any doubt about it. */
  public InternalRow read(byte[] record) {
    if (record == null || record.length > LONGEST_RECORD) {
      return null;
    }
    Cursor cursor = new Cursor(record);
    try {
      cursor.blanks();
      if (record[cursor.at] != '{') {
        return null;
      }
      Object[] found = cursor.object(this, 0);
      if (found == null) {
        return null;
      }
      while (cursor.at < record.length) {
        if (!isBlank(record[cursor.at])) {
          return null;
        }
        cursor.at++;
      }
      return new GenericInternalRow(found);
    } catch (ArrayIndexOutOfBoundsException error) {
      return null; // the record ends before its object
    }
  }

  public String toString() {
    return "QuickJson";
  }

  /** The column of this name, or -1. Members mostly come in one order, so the one behind the last is tried first. */
  private int find(byte[] bytes, int from, int length, int likely) {
    if (likely < names.length && same(names[likely], bytes, from, length)) {
      return likely;
    }
    for (int i = 0; i < names.length; i++) {
      if (same(names[i], bytes, from, length)) {
        return i;
      }
    }
    return -1;
  }

  private static boolean same(byte[] name, byte[] bytes, int from, int length) {
    if (name.length != length) {
      return false;
    }
    for (int i = 0; i < length; i++) {
      if (name[i] != bytes[from + i]) {
        return false;
      }
    }
    return true;
  }

  private static boolean isBlank(byte one) {
    return one == ' ' || one == '\n' || one == '\r' || one == '\t';
  }

  private static boolean isDigit(byte one) {
    return one >= '0' && one <= '9';
  }

  private static int hex(byte one) {
    if (one >= '0' && one <= '9') return one - '0';
    if (one >= 'a' && one <= 'f') return one - 'a' + 10;
    if (one >= 'A' && one <= 'F') return one - 'A' + 10;
    return -1;
  }

  /** A place in a record. What it passes is what the grammar allows; reading on behind the end of the array throws. */
  private static final class Cursor {
    private final byte[] bytes;
    private int at;
    private boolean escaped; // whether the text passed last has escapes in it

    Cursor(byte[] bytes) {
      this.bytes = bytes;
    }

    void blanks() {
      while (isBlank(bytes[at])) {
        at++;
      }
    }

    /** The members of the object that begins here, null where in doubt. */
    Object[] object(QuickJson columns, int depth) {
      Object[] values = new Object[columns.names.length];
      long seen = 0;
      int likely = 0;
      at++;
      blanks();
      if (bytes[at] == '}') {
        at++;
        return values;
      }
      while (true) {
        if (bytes[at] != '"') {
          return null;
        }
        int from = at + 1;
        if (!text() || escaped) {
          return null;
        }
        int column = columns.find(bytes, from, at - 1 - from, likely);
        blanks();
        if (bytes[at] != ':') {
          return null;
        }
        at++;
        blanks();
        if (column < 0) {
          if (!skip(depth)) {
            return null;
          }
        } else {
          if ((seen & (1L << column)) != 0) {
            return null;
          }
          seen |= 1L << column;
          likely = column + 1;
          Object value = value(columns, column, depth);
          if (value == DOUBT) {
            return null;
          }
          values[column] = value;
        }
        blanks();
        byte next = bytes[at++];
        if (next == '}') {
          return values;
        }
        if (next != ',') {
          return null;
        }
        blanks();
      }
    }

    private Object value(QuickJson columns, int column, int depth) {
      byte first = bytes[at];
      if (first == 'n') {
        return word("null") ? null : DOUBT;
      }
      int kind = columns.kinds[column];
      switch (kind) {
        case STRING:
          return first == '"' ? string() : DOUBT;
        case BOOLEAN:
          if (first == 't') return word("true") ? Boolean.TRUE : DOUBT;
          if (first == 'f') return word("false") ? Boolean.FALSE : DOUBT;
          return DOUBT;
        case TIMESTAMP:
          return first == '"' ? instant() : millis();
        case DATE:
          return first == '"' ? date() : DOUBT;
        case DOUBLE:
          return number();
        case DECIMAL:
          return decimal(columns.precisions[column], columns.scales[column]);
        case STRUCT:
          if (first != '{' || depth >= DEEPEST) return DOUBT;
          Object[] found = object(columns.inner[column], depth + 1);
          return found == null ? DOUBT : new GenericInternalRow(found);
        case ARRAY:
          return first == '[' && depth < DEEPEST ? items(columns.inner[column], false, depth + 1) : DOUBT;
        case MAP:
          return first == '{' && depth < DEEPEST ? items(columns.inner[column], true, depth + 1) : DOUBT;
        default:
          return whole(kind);
      }
    }

    /** The items of the array that begins here, or of the map, whose keys come once each. */
    private Object items(QuickJson of, boolean named, int depth) {
      byte last = (byte) (named ? '}' : ']');
      ArrayList keys = new ArrayList();
      ArrayList values = new ArrayList();
      at++;
      blanks();
      boolean more = bytes[at] != last;
      if (!more) {
        at++;
      }
      while (more) {
        if (named) {
          Object key = bytes[at] == '"' ? string() : DOUBT;
          if (key == DOUBT || keys.contains(key)) {
            return DOUBT;
          }
          keys.add(key);
          blanks();
          if (bytes[at] != ':') {
            return DOUBT;
          }
          at++;
          blanks();
        }
        Object value = value(of, 0, depth);
        if (value == DOUBT) {
          return DOUBT;
        }
        values.add(value);
        blanks();
        byte next = bytes[at++];
        more = next == ',';
        if (more) {
          blanks();
        } else if (next != last) {
          return DOUBT;
        }
      }
      GenericArrayData found = new GenericArrayData(values.toArray());
      return named ? (Object) new ArrayBasedMapData(new GenericArrayData(keys.toArray()), found) : found;
    }

    /** Passes a value that nobody wants. */
    private boolean skip(int depth) {
      byte first = bytes[at];
      if (first == '"') return text();
      if (first == '{' || first == '[') return depth < DEEPEST && nested(first == '{', depth + 1);
      if (first == 't') return word("true");
      if (first == 'f') return word("false");
      if (first == 'n') return word("null");
      return digits();
    }

    private boolean nested(boolean named, int depth) {
      byte last = (byte) (named ? '}' : ']');
      at++;
      blanks();
      if (bytes[at] == last) {
        at++;
        return true;
      }
      while (true) {
        if (named) {
          if (bytes[at] != '"' || !text()) {
            return false;
          }
          blanks();
          if (bytes[at] != ':') {
            return false;
          }
          at++;
          blanks();
        }
        if (!skip(depth)) {
          return false;
        }
        blanks();
        byte next = bytes[at++];
        if (next == last) {
          return true;
        }
        if (next != ',') {
          return false;
        }
        blanks();
      }
    }

    private boolean word(String word) {
      for (int i = 0; i < word.length(); i++) {
        if (bytes[at + i] != word.charAt(i)) {
          return false;
        }
      }
      at += word.length();
      return true;
    }

    /** Passes a text in quotes, and notes whether there are escapes in it. */
    private boolean text() {
      escaped = false;
      int here = at + 1;
      while (true) {
        byte one = bytes[here];
        if (one == '"') {
          at = here + 1;
          return true;
        }
        if (one == '\\') {
          escaped = true;
          byte kind = bytes[here + 1];
          if (kind == 'u') {
            for (int i = 2; i < 6; i++) {
              if (hex(bytes[here + i]) < 0) {
                return false;
              }
            }
            here += 6;
          } else if (simple(kind) >= 0) {
            here += 2;
          } else {
            return false;
          }
        } else if (one >= ' ') {
          here++;
        } else if (one >= 0) {
          return false; // a control character
        } else {
          int length = sequence(here);
          if (length == 0) {
            return false;
          }
          here += length;
        }
      }
    }

    /** The byte that an escape of one letter stands for, or -1. */
    private static int simple(byte kind) {
      switch (kind) {
        case '"':
          return '"';
        case '\\':
          return '\\';
        case '/':
          return '/';
        case 'b':
          return '\b';
        case 'f':
          return '\f';
        case 'n':
          return '\n';
        case 'r':
          return '\r';
        case 't':
          return '\t';
        default:
          return -1;
      }
    }

    /** How many bytes the character beyond ASCII has that begins here; 0 where it is none. */
    private int sequence(int here) {
      int first = bytes[here] & 0xff;
      if (first < 0xc2 || first > 0xf4) {
        return 0;
      }
      int second = bytes[here + 1] & 0xff;
      if (first < 0xe0) {
        return isNext(second) ? 2 : 0;
      }
      boolean two = isNext(second) && isNext(bytes[here + 2] & 0xff);
      if (first < 0xf0) {
        boolean fits = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0);
        return two && fits ? 3 : 0;
      }
      boolean fits = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
      return two && fits && isNext(bytes[here + 3] & 0xff) ? 4 : 0;
    }

    private static boolean isNext(int one) {
      return (one & 0xc0) == 0x80;
    }

    private Object string() {
      int from = at + 1;
      if (!text()) {
        return DOUBT;
      }
      int length = at - 1 - from;
      return escaped ? unescaped(from, length) : UTF8String.fromBytes(bytes, from, length);
    }

    private Object unescaped(int from, int length) {
      byte[] made = new byte[length];
      int count = 0;
      int end = from + length;
      for (int here = from; here < end; ) {
        byte one = bytes[here];
        if (one != '\\') {
          made[count++] = one;
          here++;
        } else if (bytes[here + 1] != 'u') {
          made[count++] = (byte) simple(bytes[here + 1]);
          here += 2;
        } else {
          int code = 0;
          for (int i = 2; i < 6; i++) {
            code = code << 4 | hex(bytes[here + i]);
          }
          if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
            return DOUBT; // a character in two halves, or half of one
          }
          if (code < 0x80) {
            made[count++] = (byte) code;
          } else if (code < 0x800) {
            made[count++] = (byte) (0xc0 | code >> 6);
            made[count++] = (byte) (0x80 | code & 0x3f);
          } else {
            made[count++] = (byte) (0xe0 | code >> 12);
            made[count++] = (byte) (0x80 | code >> 6 & 0x3f);
            made[count++] = (byte) (0x80 | code & 0x3f);
          }
          here += 6;
        }
      }
      return UTF8String.fromBytes(made, 0, count);
    }

    /** Passes a number. */
    private boolean digits() {
      int from = at;
      if (bytes[at] == '-') {
        at++;
      }
      if (bytes[at] == '0') {
        at++;
      } else if (!run()) {
        return false;
      }
      if (bytes[at] == '.') {
        at++;
        if (!run()) {
          return false;
        }
      }
      if (bytes[at] == 'e' || bytes[at] == 'E') {
        at++;
        if (bytes[at] == '+' || bytes[at] == '-') {
          at++;
        }
        if (!run()) {
          return false;
        }
      }
      return at - from < LONGEST_NUMBER;
    }

    private boolean run() {
      if (!isDigit(bytes[at])) {
        return false;
      }
      while (isDigit(bytes[at])) {
        at++;
      }
      return true;
    }

    /** A whole number without a fraction, an exponent or a sign before zero; Long.MIN_VALUE where it is none. */
    private long integer() {
      int from = at;
      if (!digits()) {
        return Long.MIN_VALUE;
      }
      boolean negative = bytes[from] == '-';
      int here = negative ? from + 1 : from;
      if (at - here > MOST_DIGITS || (negative && bytes[here] == '0')) {
        return Long.MIN_VALUE;
      }
      long value = 0;
      for (; here < at; here++) {
        if (!isDigit(bytes[here])) {
          return Long.MIN_VALUE;
        }
        value = value * 10 + (bytes[here] - '0');
      }
      return negative ? -value : value;
    }

    private Object whole(int kind) {
      long value = integer();
      if (value == Long.MIN_VALUE) return DOUBT;
      if (kind == LONG) return Long.valueOf(value);
      if (kind == INT) return value == (int) value ? (Object) Integer.valueOf((int) value) : DOUBT;
      if (kind == BYTE) return value == (byte) value ? (Object) Byte.valueOf((byte) value) : DOUBT;
      return value == (short) value ? (Object) Short.valueOf((short) value) : DOUBT;
    }

    private Object millis() {
      long value = integer();
      return value < -LATEST_MILLIS || value > LATEST_MILLIS ? DOUBT : (Object) Long.valueOf(value * 1000);
    }

    private Object number() {
      int from = at;
      if (!digits()) {
        return DOUBT;
      }
      boolean negative = bytes[from] == '-';
      long value = 0;
      int count = 0;
      int behind = -1; // digits behind the point
      int here = negative ? from + 1 : from;
      for (; here < at && count <= MOST_DIGITS; here++) {
        byte one = bytes[here];
        if (isDigit(one)) {
          value = value * 10 + (one - '0');
          count++;
          if (behind >= 0) {
            behind++;
          }
        } else if (one == '.') {
          behind = 0;
        } else {
          break;
        }
      }
      if (negative && value == 0) {
        return DOUBT; // Spark loses the sign of some zeros
      }
      double made;
      if (here == at && count <= MOST_DIGITS && value <= EXACT && behind < TENS.length) {
        made = behind > 0 ? value / TENS[behind] : value; // one rounding, as it has to be
        made = negative ? -made : made;
      } else {
        made = Double.parseDouble(new String(bytes, from, at - from, StandardCharsets.ISO_8859_1));
      }
      return Double.isInfinite(made) || made == 0 && value != 0 ? DOUBT : (Object) Double.valueOf(made);
    }

    private Object decimal(int precision, int scale) {
      int from = at;
      if (!digits()) {
        return DOUBT;
      }
      boolean negative = bytes[from] == '-';
      long value = 0;
      int count = 0;
      int behind = -1;
      for (int here = negative ? from + 1 : from; here < at; here++) {
        byte one = bytes[here];
        if (one == '.') {
          behind = 0;
          continue;
        }
        if (!isDigit(one) || count == MOST_DIGITS) {
          return DOUBT;
        }
        value = value * 10 + (one - '0');
        count++;
        if (behind >= 0) {
          behind++;
        }
      }
      int more = scale - Math.max(behind, 0);
      if (more < 0 || count + more > precision) {
        return DOUBT; // to be rounded, or perhaps too large
      }
      value = negative ? -value : value;
      if (precision > MOST_DIGITS) {
        return Decimal.apply(new BigDecimal(BigInteger.valueOf(value), scale - more).setScale(scale), precision, scale);
      }
      for (; more > 0; more--) {
        value *= 10;
      }
      return Decimal.createUnsafe(value, precision, scale);
    }

    /** Two digits, or -1. */
    private int two(int here) {
      byte first = bytes[here];
      byte second = bytes[here + 1];
      return isDigit(first) && isDigit(second) ? (first - '0') * 10 + (second - '0') : -1;
    }

    /** Days since 1970 of the date that stands here, or -1: dates from 1970 to 9999 only. */
    private int days(int here) {
      int century = two(here);
      int rest = two(here + 2);
      int month = two(here + 5);
      int day = two(here + 8);
      int year = century * 100 + rest;
      if (century < 0 || rest < 0 || bytes[here + 4] != '-' || bytes[here + 7] != '-') return -1;
      if (year < 1970 || month < 1 || month > 12 || day < 1) return -1;
      boolean leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
      int last = month == 2 ? (leap ? 29 : 28) : (month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31);
      if (day > last) return -1;
      // Years that begin in March have their odd day at the end.
      int counted = month > 2 ? year : year - 1;
      int sinceMarch = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
      return counted * 365 + counted / 4 - counted / 100 + counted / 400 + sinceMarch - 719468;
    }

    private Object date() {
      int from = at + 1;
      if (!text() || escaped || at - 1 - from != 10) {
        return DOUBT;
      }
      int days = days(from);
      return days < 0 ? DOUBT : (Object) Integer.valueOf(days);
    }

    /** YYYY-MM-DD, a T or a blank, HH:MM:SS, up to six digits of a second, and perhaps a Z. */
    private Object instant() {
      int from = at + 1;
      if (!text() || escaped) {
        return DOUBT;
      }
      int end = at - 1;
      if (end - from > 19 && bytes[end - 1] == 'Z') {
        end--;
      }
      int length = end - from;
      if (length < 19 || length == 20 || length > 26) {
        return DOUBT;
      }
      int days = days(from);
      int hour = two(from + 11);
      int minute = two(from + 14);
      int second = two(from + 17);
      byte between = bytes[from + 10];
      if (days < 0 || (between != 'T' && between != ' ') || bytes[from + 13] != ':' || bytes[from + 16] != ':') {
        return DOUBT;
      }
      if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
        return DOUBT;
      }
      int micros = 0;
      if (length > 19) {
        if (bytes[from + 19] != '.') {
          return DOUBT;
        }
        int unit = 100000;
        for (int here = from + 20; here < end; here++) {
          if (!isDigit(bytes[here])) {
            return DOUBT;
          }
          micros += (bytes[here] - '0') * unit;
          unit /= 10;
        }
      }
      return Long.valueOf(((days * 24L + hour) * 60 + minute) * 60000000L + second * 1000000L + micros);
    }
  }
}
