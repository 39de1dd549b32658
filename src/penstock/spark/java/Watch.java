package penstock;

import java.util.Arrays;
import org.apache.spark.util.AccumulatorV2;

/**
 * Stands in the way of the rows of a scan: finds the largest event time of each partition, and counts the bad rows,
 * which it lets go no further. An accumulator of Spark: each task has one of its own, and they are put together when the
 * task has ended well.
 *
 * Janino compiles this file: no lambdas, no generics of its own.
 */
public final class Watch extends AccumulatorV2 {
  private static final long serialVersionUID = 1L;
  private static final long NONE = Long.MIN_VALUE;

  private long[] largest = {};
  private long bad;

  /** Whether a row goes on; its time counts for the partition if it may. */
  public boolean pass(boolean isBad, boolean counts, int partition, long time) {
    if (counts) {
      reach(partition + 1);
      if (time > largest[partition]) {
        largest[partition] = time;
      }
    }
    if (isBad) {
      bad++;
    }
    return !isBad;
  }

  private void reach(int partitions) {
    if (partitions > largest.length) {
      int before = largest.length;
      largest = Arrays.copyOf(largest, partitions);
      Arrays.fill(largest, before, partitions, NONE);
    }
  }

  /** How many rows were bad, then the largest time of each partition, empty where there is none; it then begins anew. */
  public synchronized String take() {
    StringBuilder found = new StringBuilder();
    found.append(bad);
    for (int i = 0; i < largest.length; i++) {
      found.append(',');
      if (largest[i] != NONE) {
        found.append(largest[i]);
      }
    }
    reset();
    return found.toString();
  }

  public synchronized void merge(AccumulatorV2 other) {
    Watch more = (Watch) other;
    reach(more.largest.length);
    for (int i = 0; i < more.largest.length; i++) {
      largest[i] = Math.max(largest[i], more.largest[i]);
    }
    bad += more.bad;
  }

  public AccumulatorV2 copy() {
    Watch made = new Watch();
    made.largest = (long[]) largest.clone();
    made.bad = bad;
    return made;
  }

  public synchronized void reset() {
    largest = new long[0];
    bad = 0;
  }

  public boolean isZero() {
    return largest.length == 0 && bad == 0;
  }

  public void add(Object row) {
    throw new UnsupportedOperationException("rows are shown to pass()");
  }

  public Object value() {
    return Long.valueOf(bad);
  }

  public String toString() {
    return "watch";
  }
}
