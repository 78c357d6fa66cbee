//! Cgroup ids and the names that people know them by.
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Digits of a container id that are shown, as container tools do.
const CONTAINER_DIGITS: usize = 12;
const CONTAINER_ID_LEN: usize = 64;

/// Names of the cgroups below one folder.
#[derive(Debug)]
pub struct Workloads {
    root: PathBuf,
    /// Name of the root itself; what lies below it is named behind a slash, or alone if this is empty.
    root_name: String,
    names: HashMap<u64, String>,
    /// Those whose folder was there at the last look.
    alive: HashSet<u64>,
}

impl Workloads {
    /// The cgroups below `root`, whose own path is `root_name`; with an empty one, the root is called `/`.
    pub fn new(root: &Path, root_name: &str) -> Self {
        Self {
            root: root.to_path_buf(),
            root_name: root_name.to_owned(),
            names: HashMap::new(),
            alive: HashSet::new(),
        }
    }

    /// Looks at the folders that are there now. Names of those that are gone are kept.
    pub fn refresh(&mut self) {
        let root = self.root.clone();
        self.alive.clear();
        self.walk(&root, "");
    }

    /// Ids and names.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        self.names.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// Whether the cgroup was there at the last look.
    pub fn is_alive(&self, id: u64) -> bool {
        self.alive.contains(&id)
    }

    /// Forgets the names of cgroups that are gone and not `in_use`; gives their ids.
    pub fn forget(&mut self, in_use: &HashSet<u64>) -> HashSet<u64> {
        let alive = &self.alive;
        self.names.extract_if(|id, _| !alive.contains(id) && !in_use.contains(id)).map(|(id, _)| id).collect()
    }

    /// The name of a cgroup by its id.
    pub fn name(&self, id: u64) -> String {
        match (id, self.names.get(&id)) {
            (0, _) => "overflow".to_owned(),
            (_, Some(name)) => name.clone(),
            (_, None) => format!("cgroup-{id}"),
        }
    }

    /// Whether the cgroup was seen.
    pub fn knows(&self, id: u64) -> bool {
        id == 0 || self.names.contains_key(&id)
    }

    fn walk(&mut self, folder: &Path, path: &str) {
        // One that was removed in between keeps its name.
        let Ok(metadata) = fs::metadata(folder) else { return };
        // The id of a cgroup is the inode number of its folder (kernfs, since 5.5).
        self.names.insert(metadata.ino(), self.label(path));
        self.alive.insert(metadata.ino());
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                let below = if path.is_empty() { name } else { format!("{path}/{name}") };
                self.walk(&entry.path(), &below);
            }
        }
    }

    fn label(&self, path: &str) -> String {
        match (self.root_name.as_str(), path) {
            ("", "") => "/".to_owned(),
            ("", path) => name_of(path),
            (root, "") => name_of(root),
            (root, path) => name_of(&format!("{root}/{path}")),
        }
    }
}

/// The shortest name by which people know a cgroup: a container's id, a systemd unit, else its path.
fn name_of(path: &str) -> String {
    if let Some(container) = path.rsplit('/').find_map(container) {
        return container.to_owned();
    }
    let unit = path.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope"));
    unit.unwrap_or(path).to_owned()
}

/// `docker-<id>.scope`, `cri-containerd-<id>.scope`, `crio-<id>`, or `<id>` alone.
fn container(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let id = part.rsplit('-').next().unwrap_or(part);
    let is_id = id.len() == CONTAINER_ID_LEN && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { id.get(..CONTAINER_DIGITS) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let id = "0123456789abcdef".repeat(4);
        let rows = [
            ("shop/orders".to_owned(), "shop/orders"),
            ("system.slice/nginx.service".to_owned(), "nginx.service"),
            ("user.slice/user-0.slice/session-3.scope".to_owned(), "session-3.scope"),
            (format!("system.slice/docker-{id}.scope"), "0123456789ab"),
            (format!("kubepods.slice/pod1/cri-containerd-{id}.scope"), "0123456789ab"),
            (format!("docker/{id}"), "0123456789ab"),
            (format!("docker/{id}/inner"), "0123456789ab"),
        ];
        for (path, name) in rows {
            assert_eq!(name_of(&path), name, "{path}");
        }
    }

    #[test]
    fn folders_are_found_by_their_inode_and_remembered() {
        let root = std::env::temp_dir().join(format!("retry-agent-workloads-{}", std::process::id()));
        let inner = root.join("shop/orders");
        fs::create_dir_all(&inner).unwrap();
        let id = fs::metadata(&inner).unwrap().ino();
        let mut workloads = Workloads::new(&root, "");
        assert!(!workloads.knows(id));
        workloads.refresh();
        fs::remove_dir_all(&root).unwrap();
        workloads.refresh();
        assert_eq!(workloads.name(id), "shop/orders");
        assert!(!workloads.is_alive(id));
        assert_eq!(workloads.forget(&HashSet::from([id])).len(), 2, "the two folders above it");
        assert_eq!(workloads.name(id), "shop/orders");
        assert_eq!(workloads.forget(&HashSet::new()), HashSet::from([id]));
        assert!(!workloads.knows(id));
        assert_eq!(workloads.name(0), "overflow");
        assert_eq!(workloads.name(1), "cgroup-1");
    }
}
