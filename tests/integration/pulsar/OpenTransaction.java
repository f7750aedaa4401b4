import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.transaction.Transaction;

/** OpenTransaction serviceUrl topic: three messages, two in a transaction, one more; commits it after a line of input. */
public class OpenTransaction {
    public static void main(String[] arguments) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true).build();
        Producer<byte[]> producer = client.newProducer()
                .topic(arguments[1])
                .enableBatching(false)
                .sendTimeout(0, TimeUnit.SECONDS)
                .create();
        for (int i = 0; i < 3; i++) {
            producer.send(("plain" + i).getBytes());
        }
        Transaction open = client.newTransaction().withTransactionTimeout(120, TimeUnit.SECONDS).build().get();
        for (int i = 0; i < 2; i++) {
            producer.newMessage(open).value(("open" + i).getBytes()).send();
        }
        producer.send("after".getBytes());
        System.out.println("READY");
        System.in.read();
        open.commit().get();
        System.out.println("DONE");
        client.close();
    }
}
