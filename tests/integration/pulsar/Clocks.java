import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Clocks serviceUrl topic seed steps firstMillis disorderMillis: messages by producers whose clock we set.
 * Plain ones, batches, chunked and compressed ones; transactions that commit and abort while others go on. */
public class Clocks {
    static final class Hand extends Clock {
        volatile long millis;

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }

        @Override
        public Instant instant() {
            return Instant.ofEpochMilli(millis);
        }

        @Override
        public long millis() {
            return millis;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Random chance = new Random(Long.parseLong(arguments[2]));
        int steps = Integer.parseInt(arguments[3]), disorder = Integer.parseInt(arguments[5]);
        long now = Long.parseLong(arguments[4]);
        Hand hand = new Hand();
        PulsarClient client =
                PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true).clock(hand).build();
        List<Producer<byte[]>> producers = new ArrayList<>();
        for (CompressionType codec : List.of(CompressionType.NONE, CompressionType.ZLIB, CompressionType.ZSTD)) {
            producers.add(client.newProducer().topic(topic).compressionType(codec).sendTimeout(0, TimeUnit.SECONDS)
                    .enableBatching(false).enableChunking(true).chunkMaxMessageSize(3_000).create());
            producers.add(client.newProducer().topic(topic).compressionType(codec).sendTimeout(0, TimeUnit.SECONDS)
                    .enableBatching(true).batchingMaxPublishDelay(5, TimeUnit.MILLISECONDS).create());
        }
        List<Transaction> open = new ArrayList<>();
        for (int step = 0; step < steps; step++) {
            now += chance.nextInt(4) == 0 ? chance.nextInt(3_000) : chance.nextInt(50);
            hand.millis = now - chance.nextInt(disorder + 1);
            if (open.size() < 3 && chance.nextInt(6) == 0) {
                open.add(client.newTransaction().withTransactionTimeout(600, TimeUnit.SECONDS).build().get());
            }
            Transaction within = open.isEmpty() || chance.nextBoolean() ? null : open.get(chance.nextInt(open.size()));
            int which = chance.nextInt(producers.size());
            Producer<byte[]> producer = producers.get(which);
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            int count = which % 2 == 0 ? 1 : 1 + chance.nextInt(8);
            for (int i = 0; i < count; i++) {
                // chunks are of messages without a transaction
                byte[] value = new byte[which % 2 == 0 && within == null && chance.nextInt(5) == 0 ? 20_000 : 40];
                chance.nextBytes(value);
                TypedMessageBuilder<byte[]> message =
                        within == null ? producer.newMessage() : producer.newMessage(within);
                if (chance.nextInt(3) == 0) {
                    message.key(chance.nextInt(20) == 0 ? "k".repeat(20_000) : "k" + chance.nextInt(9));
                }
                sent.add(message.property("step", "" + step).value(value).sendAsync());
            }
            // one of a transaction may join its batch after a flush
            for (CompletableFuture<MessageId> one : sent) {
                one.get();
            }
            if (!open.isEmpty() && chance.nextInt(6) == 0) {
                end(open.remove(chance.nextInt(open.size())), chance);
            }
        }
        for (Transaction left : open) {
            end(left, chance);
        }
        client.close();
        System.out.println("DONE");
    }

    private static void end(Transaction transaction, Random chance) throws Exception {
        (chance.nextInt(3) == 0 ? transaction.abort() : transaction.commit()).get();
    }
}
