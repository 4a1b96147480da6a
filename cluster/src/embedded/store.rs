//! The redb file of a key space: its tables, read whole when it is opened, written a transaction
//! at a time.

use crate::backing::Adapter;
use crate::life::derive_id;
use crate::state::{Rows, State};
use crate::{Backing, Entry, Error, Identity, Template, Templates, life};
use prost::Message;
use protocol::wire::gazette;
use protocol::{Invalid, JournalSpec};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The numbers of the data set, by name.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// By journal: create revision, mod revision, nonce of the life, spec in Gazette's encoding.
const SPECS: TableDefinition<&str, (i64, i64, u32, &[u8])> = TableDefinition::new("specs");
/// By prefix: encoded templates.
const TEMPLATES: TableDefinition<&str, &[u8]> = TableDefinition::new("templates");

/// The layout above. A file with a higher one is refused.
const FORMAT: u64 = 1;
/// Bytes of pages that redb keeps. Reads are answered from our own memory, so few serve.
const CACHE_SIZE: usize = 4 << 20;

type Faulted<T> = Result<T, redb::Error>;

/// The file; closed at first, and again after a write failed, since redb then takes no other.
#[derive(Debug)]
pub(super) struct Store {
    adapter: Adapter,
    database: Option<Database>,
}

impl Store {
    pub fn new(backing: Arc<dyn Backing>) -> Self {
        Store { adapter: Adapter::new(backing), database: None }
    }

    pub fn is_open(&self) -> bool {
        self.database.is_some()
    }

    pub fn close(&mut self) {
        self.database = None;
    }

    /// Opens or creates the file and reads all of it.
    pub fn open(&mut self, entropy: u64) -> Result<(Identity, State), Error> {
        // What can be read back after a failed sync may be in no place but the page cache.
        if self.adapter.is_unsynced() {
            return Err(Error::Unsynced);
        }
        let (database, mut tables) = self.verified().map_err(fault)?;
        if tables.meta.is_empty() {
            let meta = new_meta(entropy);
            create(&database, &meta).map_err(fault)?;
            tables.meta = meta;
        }
        let opened = tables.into_state()?;
        self.database = Some(database);
        Ok(opened)
    }

    /// The file, whose sums are right, and what is in it. redb takes for granted that what its
    /// pages say can be, and panics where it can't: then the file is as damaged as where a sum is
    /// wrong.
    fn verified(&self) -> Faulted<(Database, Tables)> {
        let verify = || {
            let mut database = self.database()?;
            if !database.check_integrity()? {
                return Err(corrupted("its sums are wrong"));
            }
            let tables = read(&database)?;
            Ok((database, tables))
        };
        catch_unwind(AssertUnwindSafe(verify)).unwrap_or_else(|_| Err(corrupted("no sense in it")))
    }

    pub fn is_blank(&self) -> io::Result<bool> {
        self.adapter.is_blank()
    }

    pub fn write_specs(&mut self, revision: i64, rows: &Rows) -> Result<(), Error> {
        self.write(revision, |transaction| {
            let mut specs = transaction.open_table(SPECS)?;
            for (name, entry) in rows {
                match entry {
                    Some(entry) => {
                        let spec = gazette::JournalSpec::from(entry.spec.clone()).encode_to_vec();
                        let row = (entry.create_revision, entry.mod_revision, entry.nonce, &*spec);
                        specs.insert(&**name, row)?;
                    }
                    None => drop(specs.remove(&**name)?),
                }
            }
            Ok(())
        })
    }

    /// Puts a template, or deletes the one of `prefix`.
    pub fn write_template(
        &mut self,
        revision: i64,
        prefix: &str,
        template: Option<&Template>,
    ) -> Result<(), Error> {
        self.write(revision, |transaction| {
            let mut templates = transaction.open_table(TEMPLATES)?;
            match template {
                Some(template) => drop(templates.insert(prefix, &*template.encode())?),
                None => drop(templates.remove(prefix)?),
            }
            Ok(())
        })
    }

    /// One durable transaction that also sets the revision. If it fails the file is closed.
    fn write(
        &mut self,
        revision: i64,
        fill: impl FnOnce(&WriteTransaction) -> Faulted<()>,
    ) -> Result<(), Error> {
        let database = self.database.as_ref().expect("open before each write");
        let written = write(database, |transaction| {
            transaction.open_table(META)?.insert("revision", revision.unsigned_abs())?;
            fill(transaction)
        });
        written.map_err(|error| {
            self.close();
            fault(error)
        })
    }

    /// The bytes of the file. All that was committed is in it.
    pub fn image(&self) -> Result<Vec<u8>, Error> {
        self.adapter.bytes().map_err(|error| fault(redb::Error::Io(error)))
    }

    fn database(&self) -> Faulted<Database> {
        self.adapter.clear_unfinished()?;
        self.adapter.renew()?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_SIZE);
        Ok(builder.create_with_backend(self.adapter.clone())?)
    }
}

fn corrupted(why: &str) -> redb::Error {
    redb::Error::Corrupted(why.to_owned())
}

fn fault(error: redb::Error) -> Error {
    Error::Storage(Box::new(error))
}

/// A transaction that is synced when this returns: redb's durability unless told otherwise.
fn write(database: &Database, fill: impl FnOnce(&WriteTransaction) -> Faulted<()>) -> Faulted<()> {
    let transaction = database.begin_write()?;
    fill(&transaction)?;
    Ok(transaction.commit()?)
}

/// The numbers of a new data set.
fn new_meta(entropy: u64) -> BTreeMap<String, u64> {
    let meta = [
        ("format", FORMAT),
        ("cluster_id", derive_id(entropy, "cluster")),
        ("member_id", derive_id(entropy, "member")),
        // One broker elects itself once.
        ("raft_term", 1),
        ("revision", 1),
    ];
    meta.map(|(name, value)| (name.to_owned(), value)).into()
}

fn create(database: &Database, meta: &BTreeMap<String, u64>) -> Faulted<()> {
    write(database, |transaction| {
        let mut table = transaction.open_table(META)?;
        for (name, value) in meta {
            table.insert(&**name, value)?;
        }
        transaction.open_table(SPECS)?;
        transaction.open_table(TEMPLATES)?;
        Ok(())
    })
}

/// The tables as they are stored.
struct Tables {
    meta: BTreeMap<String, u64>,
    specs: Vec<(String, SpecRow)>,
    templates: Vec<(String, Vec<u8>)>,
}

struct SpecRow {
    create_revision: i64,
    mod_revision: i64,
    nonce: u32,
    spec: Vec<u8>,
}

/// Reads all tables; they are empty in a file that was just made.
fn read(database: &Database) -> Faulted<Tables> {
    // Opening a table for writing makes it, which an aborted transaction undoes.
    let transaction = database.begin_write()?;
    let mut tables = Tables { meta: BTreeMap::new(), specs: Vec::new(), templates: Vec::new() };
    for row in transaction.open_table(META)?.iter()? {
        let (name, value) = row?;
        tables.meta.insert(name.value().to_owned(), value.value());
    }
    for row in transaction.open_table(SPECS)?.iter()? {
        let (name, row) = row?;
        let (create_revision, mod_revision, nonce, spec) = row.value();
        let row = SpecRow { create_revision, mod_revision, nonce, spec: spec.to_vec() };
        tables.specs.push((name.value().to_owned(), row));
    }
    for row in transaction.open_table(TEMPLATES)?.iter()? {
        let (prefix, template) = row?;
        tables.templates.push((prefix.value().to_owned(), template.value().to_vec()));
    }
    transaction.abort()?;
    Ok(tables)
}

impl Tables {
    fn into_state(self) -> Result<(Identity, State), Error> {
        let format = self.number("format")?;
        if format > FORMAT {
            return Err(Error::NewerFormat { found: format, known: FORMAT });
        }
        let identity = Identity {
            cluster_id: self.number("cluster_id")?,
            member_id: self.number("member_id")?,
            raft_term: self.number("raft_term")?,
        };
        let revision = i64::try_from(self.number("revision")?)
            .map_err(|_| damaged("meta", "revision", "past 2^63"))?;
        let mut templates = Templates::default();
        for (prefix, bytes) in self.templates {
            let template = Template::decode(prefix.clone(), &bytes);
            templates.put(template.map_err(|error| damaged("templates", &prefix, error))?);
        }
        let entry = |(name, row): (String, SpecRow)| {
            row.into_entry(identity.cluster_id, &name).map_err(|e| damaged("specs", &name, e))
        };
        let entries = self.specs.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok((identity, State::new(revision.max(1), templates, entries)))
    }

    /// A number that is never zero.
    fn number(&self, name: &str) -> Result<u64, Error> {
        let value = self.meta.get(name).copied().filter(|value| *value != 0);
        value.ok_or_else(|| damaged("meta", name, "missing or zero"))
    }
}

impl SpecRow {
    fn into_entry(self, cluster_id: u64, name: &str) -> Result<Entry, Invalid> {
        let SpecRow { create_revision, mod_revision, nonce, spec } = self;
        let spec = gazette::JournalSpec::decode(&*spec)
            .map_err(|error| Invalid::new(format!("not an encoded JournalSpec ({error})")))?;
        let spec = JournalSpec::try_from(spec)?;
        if spec.name.as_str() != name {
            return Err(Invalid::new(format!("spec is of {}", spec.name)));
        }
        let life = life(cluster_id, &spec.name, create_revision, nonce);
        Ok(Entry { spec, create_revision, mod_revision, life, nonce })
    }
}

fn damaged(table: &'static str, key: &str, reason: impl ToString) -> Error {
    Error::Damaged { table, key: key.to_owned(), reason: reason.to_string() }
}
