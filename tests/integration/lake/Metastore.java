import java.io.File;
import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** A metastore whose locks also work: it does not make the tables for them by itself. */
public final class Metastore {
    public static void main(String[] arguments) throws Throwable {
        TxnDbUtil.prepDb(MetastoreConf.newMetastoreConf());
        HiveMetaStore.main(arguments);
    }

    /** A bucket as the metastore sees it: it makes folders there, which buckets do not have, and reads nothing. */
    public static final class Bucket extends RawLocalFileSystem {
        private URI name;

        @Override
        public void initialize(URI place, Configuration configuration) throws IOException {
            super.initialize(place, configuration);
            name = URI.create(place.getScheme() + "://" + place.getAuthority());
        }

        @Override
        public URI getUri() {
            return name == null ? super.getUri() : name;
        }

        @Override
        public File pathToFile(Path path) {
            return new File(name.getAuthority() + path.toUri().getPath()).getAbsoluteFile();
        }
    }
}
