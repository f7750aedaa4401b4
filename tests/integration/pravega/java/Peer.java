import io.pravega.client.BatchClientFactory;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.EventPointer;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** Pravega's own Java client, driven by lines: one command in, one JSON object out. */
public class Peer {
    static ClientConfig CONFIG;

    static class Raw implements Serializer<ByteBuffer> {
        public ByteBuffer serialize(ByteBuffer value) {
            return value;
        }

        public ByteBuffer deserialize(ByteBuffer value) {
            return value;
        }
    }

    static String hex(byte[] bytes, int length) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            text.append(String.format("%02x", bytes[i]));
        }
        return text.toString();
    }

    static byte[] remaining(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "'").replace("\n", " ") + '"';
    }

    static StreamCut cut(String text) {
        return text.equals("unbounded") ? StreamCut.UNBOUNDED : StreamCut.from(text);
    }

    static List<SegmentRange> ranges(BatchClientFactory batch, String[] a) {
        List<SegmentRange> ranges = new ArrayList<>();
        batch.getSegments(Stream.of(a[1], a[2]), cut(a[3]), cut(a[4])).getIterator().forEachRemaining(ranges::add);
        ranges.sort(Comparator.comparingLong(SegmentRange::getSegmentId));
        return ranges;
    }

    /** What is left is the header of an empty event at the end of a sealed segment: the client cannot read it. */
    static boolean isEmptyLast(Exception error, SegmentIterator<ByteBuffer> events, SegmentRange range) {
        return error.getClass().getSimpleName().equals("EndOfSegmentException")
            && range.getEndOffset() - events.getOffset() == 8;
    }

    /** digest scope stream from to: per segment its range, count of events, and SHA-256 of length-prefixed payloads. */
    static String digest(String[] a) throws Exception {
        StringBuilder out = new StringBuilder("{");
        try (BatchClientFactory batch = BatchClientFactory.withScope(a[1], CONFIG)) {
            for (SegmentRange range : ranges(batch, a)) {
                MessageDigest digest = MessageDigest.getInstance("SHA-256");
                long count = 0;
                try (SegmentIterator<ByteBuffer> events = batch.readSegment(range, new Raw())) {
                    boolean more = true;
                    while (more && events.hasNext()) {
                        byte[] event = new byte[0];
                        try {
                            event = remaining(events.next());
                        } catch (Exception error) {
                            if (!isEmptyLast(error, events, range)) {
                                throw error;
                            }
                            more = false;
                        }
                        digest.update(ByteBuffer.allocate(4).putInt(0, event.length));
                        digest.update(event);
                        count++;
                    }
                }
                out.append(out.length() > 1 ? "," : "").append(String.format("\"%d\":[%d,%d,%d,\"%s\"]",
                    range.getSegmentId(), range.getStartOffset(), range.getEndOffset(), count, hex(digest.digest(), 32)));
            }
        }
        return out.append("}").toString();
    }

    /** time scope stream from to: seconds to iterate over all events of the ranges, and their count. */
    static String time(String[] a) throws Exception {
        try (BatchClientFactory batch = BatchClientFactory.withScope(a[1], CONFIG)) {
            List<SegmentRange> ranges = ranges(batch, a);
            long count = 0;
            long bytes = 0;
            long begun = System.nanoTime();
            for (SegmentRange range : ranges) {
                try (SegmentIterator<ByteBuffer> events = batch.readSegment(range, new Raw())) {
                    while (events.hasNext()) {
                        bytes += events.next().remaining();
                        count++;
                    }
                }
            }
            return String.format("{\"seconds\":%.6f,\"events\":%d,\"bytes\":%d}",
                (System.nanoTime() - begun) / 1e9, count, bytes);
        }
    }

    static String cuts(String[] a) {
        try (StreamManager manager = StreamManager.create(CONFIG)) {
            io.pravega.client.admin.StreamInfo info = manager.fetchStreamInfo(a[1], a[2]).join();
            return String.format("{\"head\":%s,\"tail\":%s,\"sealed\":%s}", quoted(info.getHeadStreamCut().asText()),
                quoted(info.getTailStreamCut().asText()), info.isSealed());
        }
    }

    /** decode text: what the client makes of a cut. */
    static String decode(String[] a) {
        StreamCut cut = StreamCut.from(a[1]);
        Map<Long, Long> offsets = new TreeMap<>();
        cut.asImpl().getPositions().forEach((segment, offset) -> offsets.put(segment.getSegmentId(), offset));
        StringBuilder out = new StringBuilder();
        offsets.forEach((id, offset) -> out.append(out.length() > 0 ? "," : "").append("\"" + id + "\":" + offset));
        byte[] bytes = cut.toBytes().array();
        return String.format("{\"stream\":%s,\"offsets\":{%s},\"text\":%s,\"hex\":\"%s\"}",
            quoted(cut.asImpl().getStream().getScopedName()), out, quoted(cut.asText()), hex(bytes, bytes.length));
    }

    /** fetch scope stream hex: the event that a pointer's bytes name. */
    static String fetch(String[] a) {
        byte[] bytes = new byte[a[3].length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(a[3].substring(2 * i, 2 * i + 2), 16);
        }
        EventPointer pointer = EventPointer.fromBytes(ByteBuffer.wrap(bytes));
        try (StreamManager manager = StreamManager.create(CONFIG)) {
            byte[] event = remaining(manager.fetchEvent(pointer, new Raw()).join());
            return String.format("{\"pointer\":%s,\"event\":\"%s\"}", quoted(pointer.toString()), hex(event, event.length));
        }
    }

    /** write scope stream count size keys tag: events that begin with tag and number. */
    static String write(String[] a) throws Exception {
        int count = Integer.parseInt(a[3]);
        int size = Integer.parseInt(a[4]);
        EventWriterConfig config = EventWriterConfig.builder().enableLargeEvents(size > (8 << 20)).build();
        byte[] body = new byte[size];
        new Random(1).nextBytes(body);
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(a[1], CONFIG);
             EventStreamWriter<ByteBuffer> writer = factory.createEventWriter(a[2], new Raw(), config)) {
            for (int i = 0; i < count; i++) {
                byte[] event = body.clone();
                byte[] name = (a[6] + i + ":").getBytes();
                System.arraycopy(name, 0, event, 0, Math.min(name.length, size));
                writer.writeEvent("k" + i % Integer.parseInt(a[5]), ByteBuffer.wrap(event));
            }
            writer.flush();
        }
        return "{\"events\":" + count + "}";
    }

    /** note scope stream count pause step: events "0:", "step:", .., whose time is noted, a pause after each. */
    static String note(String[] a) throws Exception {
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(a[1], CONFIG);
             EventStreamWriter<ByteBuffer> writer =
                 factory.createEventWriter(a[2], new Raw(), EventWriterConfig.builder().build())) {
            for (int i = 0; i < Integer.parseInt(a[3]); i++) {
                long time = i * Long.parseLong(a[5]);
                writer.writeEvent("k", ByteBuffer.wrap((time + ":").getBytes())).get();
                writer.noteTime(time);
                Thread.sleep(Long.parseLong(a[4]));
            }
        }
        return "{}";
    }

    static final Map<String, EventStreamWriter<ByteBuffer>> WRITERS = new TreeMap<>();

    /** say writer scope stream time event: write one event as a writer that stays open, and note a time ("-": none). */
    static String say(String[] a) throws Exception {
        EventStreamWriter<ByteBuffer> writer = WRITERS.computeIfAbsent(a[1], name ->
            EventStreamClientFactory.withScope(a[2], CONFIG).createEventWriter(a[3], new Raw(),
                EventWriterConfig.builder().build()));
        writer.writeEvent(a[1], ByteBuffer.wrap(a[5].getBytes())).get();
        if (!a[4].equals("-")) {
            writer.noteTime(Long.parseLong(a[4]));
        }
        return "{}";
    }

    /** interface: what the controller's calls and messages look like, as the descriptor of its own interface file. */
    static String describe() {
        byte[] file = io.pravega.controller.stream.api.grpc.v1.Controller.getDescriptor().toProto().toByteArray();
        return String.format("{\"file\":\"%s\"}", hex(file, file.length));
    }

    /** hush writer: close it. */
    static String hush(String[] a) {
        WRITERS.remove(a[1]).close();
        return "{}";
    }

    static final AtomicBoolean RUNNING = new AtomicBoolean();
    static final AtomicLong WRITTEN = new AtomicLong();
    static final AtomicLong COMMITTED = new AtomicLong();
    static final List<Thread> THREADS = new ArrayList<>();

    /** load scope stream writers: write until stop; one more thread commits small transactions. */
    static String load(String[] a) {
        RUNNING.set(true);
        int writers = Integer.parseInt(a[3]);
        for (int number = 0; number <= writers; number++) {
            int own = number;
            Thread thread = new Thread(() -> {
                try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(a[1], CONFIG)) {
                    if (own == writers) {
                        transactions(factory, a[2]);
                    } else {
                        events(factory, a[2], own);
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                }
            });
            thread.start();
            THREADS.add(thread);
        }
        return "{}";
    }

    static void events(EventStreamClientFactory factory, String stream, int own) throws Exception {
        Random random = new Random(own);
        try (EventStreamWriter<ByteBuffer> writer =
                 factory.createEventWriter(stream, new Raw(), EventWriterConfig.builder().build())) {
            for (int i = 0; RUNNING.get(); i++) {
                byte[] event = new byte[random.nextInt(400)];
                random.nextBytes(event);
                writer.writeEvent("k" + random.nextInt(50), ByteBuffer.wrap(event));
                WRITTEN.incrementAndGet();
                if (i % 20 == 0) {
                    writer.flush();
                    Thread.sleep(5);
                }
            }
            writer.flush();
        }
    }

    static void transactions(EventStreamClientFactory factory, String stream) throws Exception {
        EventWriterConfig config = EventWriterConfig.builder().transactionTimeoutTime(30000).build();
        try (TransactionalEventStreamWriter<ByteBuffer> writer =
                 factory.createTransactionalEventWriter("peer", stream, new Raw(), config)) {
            for (int i = 0; RUNNING.get(); i++) {
                Transaction<ByteBuffer> transaction = writer.beginTxn();
                for (int j = 0; j < 7; j++) {
                    transaction.writeEvent("k" + j, ByteBuffer.wrap(("txn" + i + "." + j).getBytes()));
                }
                if (i % 5 == 4) {
                    transaction.abort();
                } else {
                    transaction.commit();
                    COMMITTED.addAndGet(7);
                    while (transaction.checkStatus() != Transaction.Status.COMMITTED) {
                        Thread.sleep(5);
                    }
                }
            }
        }
    }

    static String stop() throws Exception {
        RUNNING.set(false);
        for (Thread thread : THREADS) {
            thread.join();
        }
        THREADS.clear();
        return String.format("{\"events\":%d,\"committed\":%d}", WRITTEN.getAndSet(0), COMMITTED.getAndSet(0));
    }

    static String answer(String[] a) throws Exception {
        switch (a[0]) {
            case "digest": return digest(a);
            case "time": return time(a);
            case "cuts": return cuts(a);
            case "decode": return decode(a);
            case "fetch": return fetch(a);
            case "write": return write(a);
            case "load": return load(a);
            case "stop": return stop();
            case "note": return note(a);
            case "say": return say(a);
            case "hush": return hush(a);
            case "interface": return describe();
            default: throw new IllegalArgumentException(a[0]);
        }
    }

    /** Arguments are system properties, name=value: `controller`, and `authority`, a PEM file, where it speaks TLS. */
    public static void main(String[] args) throws Exception {
        for (String argument : args) {
            System.setProperty(argument.split("=", 2)[0], argument.split("=", 2)[1]);
        }
        CONFIG = ClientConfig.builder().controllerURI(URI.create(System.getProperty("controller")))
            .trustStore(System.getProperty("authority")).validateHostName(true).build();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String out;
            try {
                out = answer(line.split(" "));
            } catch (Exception error) {
                out = "{\"error\":" + quoted(error + " at " + Arrays.asList(error.getStackTrace())) + "}";
            }
            System.out.println("> " + out);
            System.out.flush();
        }
        System.exit(0);
    }
}
