//! `SeaweedFS`: an S3 server that checks signatures and checksums, one per test process.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use dynalake_pipeline::store::s3::client;
use dynalake_pipeline::store::{S3Options, S3Settings, Store};

const ACCESS_KEY: &str = "AKIDEXAMPLE";
const SECRET_KEY: &str = "secret";
const BUCKET: &str = "lake-tests";
const REGION: &str = "us-east-1";

/// A running server with one bucket.
#[derive(Debug)]
pub struct Seaweed {
    address: String,
    places: AtomicU32,
    /// The shell that ends the server when this process has gone; see [`launch`].
    _guard: Child,
}

/// A prefix of the bucket that no other test uses.
#[derive(Debug, Clone)]
pub struct S3Place {
    /// Endpoint, straight to the server.
    pub endpoint: String,
    /// Bucket.
    pub bucket: &'static str,
    /// Prefix.
    pub prefix: String,
}

/// The server of this test process; `None` (said, or a failure: see `missing`) without `SeaweedFS`.
pub fn seaweed() -> Option<&'static Seaweed> {
    static SERVER: OnceLock<Option<Seaweed>> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            let Some(weed) = crate::weed() else {
                crate::missing(
                    "SeaweedFS",
                    "run tests/run, or set DYNALAKE_WEED to its `weed`",
                );
                return None;
            };
            // Between choosing free ports and opening them somebody else may take one.
            let server = (0..3).find_map(|_| launch(&weed));
            Some(server.expect("SeaweedFS starts"))
        })
        .as_ref()
}

impl Seaweed {
    /// `host:port` of the S3 endpoint.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A fresh place for one test.
    pub fn place(&self, name: &str) -> S3Place {
        let n = self.places.fetch_add(1, Ordering::Relaxed);
        S3Place {
            endpoint: format!("http://{}", self.address),
            bucket: BUCKET,
            prefix: format!("{name}-{n}"),
        }
    }
}

impl S3Place {
    /// The same place by another way, such as a proxy.
    #[must_use]
    pub fn through(&self, endpoint: String) -> Self {
        Self {
            endpoint,
            ..self.clone()
        }
    }

    /// Its address: `s3://bucket/prefix`.
    pub fn uri(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// A client with the right credentials.
    pub fn client(&self) -> aws_sdk_s3::Client {
        self.client_with(ACCESS_KEY, SECRET_KEY)
    }

    /// A client with these credentials.
    pub fn client_with(&self, access_key: &str, secret_key: &str) -> aws_sdk_s3::Client {
        let credentials = Credentials::from_keys(access_key, secret_key, None);
        client(&S3Settings {
            region: REGION.to_owned(),
            endpoint: Some(self.endpoint.clone()),
            path_style: true,
            credentials: SharedCredentialsProvider::new(credentials),
        })
    }

    /// The place as a store.
    pub fn store(&self) -> Store {
        self.store_with(S3Options::default())
    }

    /// The place as a store with these options.
    pub fn store_with(&self, options: S3Options) -> Store {
        Store::s3(self.client(), self.bucket, &self.prefix, options)
    }

    /// The variables by which Lambda tells a function its credentials and region.
    pub fn aws_variables() -> [(&'static str, &'static str); 3] {
        [
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", REGION),
        ]
    }
}

/// Starts a server on free ports; `None` when it ended at once.
fn launch(weed: &Path) -> Option<Seaweed> {
    let folder = tempfile::Builder::new()
        .prefix("dynalake-seaweed-")
        .tempdir()
        .unwrap()
        .keep();
    fs::create_dir(folder.join("data")).unwrap();
    let identity = serde_json::json!({"identities": [{
        "name": "test",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }]});
    fs::write(folder.join("s3.json"), identity.to_string()).unwrap();

    let listeners: Vec<TcpListener> = (0..10)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let ports: Vec<u16> = listeners
        .iter()
        .map(|l| l.local_addr().unwrap().port())
        .collect();
    drop(listeners);
    let names = [
        "s3.port",
        "s3.port.grpc",
        "master.port",
        "master.port.grpc",
        "volume.port",
        "volume.port.grpc",
        "filer.port",
        "filer.port.grpc",
        "admin.port",
        "admin.port.grpc",
    ];
    let log = File::create(folder.join("log")).unwrap();
    // The shell holds the reading end of a pipe whose writing end is ours: when this process has
    // gone, however it went, `read` returns and the server and its folder go too.
    let script = r#"folder=$1; shift; "$@" </dev/null & server=$!
        while kill -0 $server 2>/dev/null && read -r line; do :; done
        kill -9 $server; wait $server; rm -rf "$folder""#;
    let mut guard = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&folder)
        .arg(weed)
        .args([
            "mini",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-admin.ui=false",
            "-webdav=false",
        ])
        .args([
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.telemetry=false",
        ])
        .arg(format!("-dir={}", folder.join("data").display()))
        .arg(format!("-s3.config={}", folder.join("s3.json").display()))
        .args(
            names
                .iter()
                .zip(&ports)
                .map(|(name, port)| format!("-{name}={port}")),
        )
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("sh runs");
    let address = format!("127.0.0.1:{}", ports[0]);
    for _ in 0..600 {
        let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
        if text.contains("enabled components are running") && TcpStream::connect(&address).is_ok() {
            let server = Seaweed {
                address,
                places: AtomicU32::new(0),
                _guard: guard,
            };
            make_bucket(&server);
            return Some(server);
        }
        if text.contains("address already in use") {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
    eprintln!("SeaweedFS did not start:\n{text}");
    drop(guard.stdin.take());
    drop(guard.wait());
    None
}

fn make_bucket(server: &Seaweed) {
    let place = server.place("bucket");
    // On a thread of its own: the caller may be inside a runtime already.
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let call = place.client().create_bucket().bucket(BUCKET).send();
        runtime
            .block_on(Box::pin(call))
            .expect("the bucket is made");
    })
    .join()
    .unwrap();
}
