//! The inventory of layout writes, read from the syntax trees of the source: every call of the six methods is known,
//! each method checks its permit before anything else, and nothing reaches the four endpoints around them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, File, ImplItemFn, ItemFn, ItemMod, LitStr, Stmt};

/// The six methods of the admin client.
const METHODS: [&str; 6] = [
    "update_cluster_layout",
    "update_cluster_layout_with_params",
    "apply_cluster_layout",
    "apply_staged_layout_changes",
    "revert_cluster_layout",
    "cluster_layout_skip_dead_nodes",
];

/// The four endpoints and their older aliases.
const ENDPOINTS: [&str; 6] = [
    "UpdateClusterLayout",
    "ApplyClusterLayout",
    "RevertClusterLayout",
    "ClusterLayoutSkipDeadNodes",
    "/v1/layout",
    "/v0/layout",
];

/// Where the six methods are, and where their endpoints are named.
const WRITES: &str = "garage/writes.rs";
const NAMES: &str = "guard/operation.rs";

/// Every call of the six methods: file, function, method. A new one belongs here only if it can be reached by a
/// Writer's reconcile alone; its permit is what proves that.
const ALLOWED: [(&str, &str, &str); 7] = [
    ("controller/cluster/operations.rs", "revert", "revert_cluster_layout"),
    ("controller/cluster/operations.rs", "skip", "cluster_layout_skip_dead_nodes"),
    ("controller/layout.rs", "apply", "apply_cluster_layout"),
    // Only a build with deliberate defects gets to these two.
    ("controller/layout.rs", "apply", "apply_staged_layout_changes"),
    ("controller/layout.rs", "mutate", "revert_cluster_layout"),
    ("controller/layout.rs", "update", "update_cluster_layout"),
    ("controller/layout.rs", "update", "update_cluster_layout_with_params"),
];

/// The one call inside the client itself.
const INNER: (&str, &str, &str) = (WRITES, "apply_staged_layout_changes", "apply_cluster_layout");

/// What a file does with layout writes.
#[derive(Default)]
struct Inventory {
    function: String,
    calls: BTreeSet<(String, String)>,
    paths: BTreeSet<String>,
    literals: BTreeSet<String>,
}

impl Inventory {
    fn of(source: &str) -> Self {
        let file: File = syn::parse_file(source).expect("the source parses");
        let mut inventory = Self::default();
        inventory.visit_file(&file);
        inventory
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, name);
        visit(self);
        self.function = outer;
    }
}

impl Inventory {
    fn visit_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Ident(name) if METHODS.contains(&name.to_string().as_str()) => {
                    self.calls.insert((self.function.clone(), name.to_string()));
                }
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if ENDPOINTS.iter().any(|endpoint| text.contains(endpoint)) {
                        self.literals.insert(text);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Inventory {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.within(function.sig.ident.to_string(), |inventory| visit::visit_item_fn(inventory, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.within(function.sig.ident.to_string(), |inventory| {
            visit::visit_impl_item_fn(inventory, function);
        });
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        if METHODS.contains(&method.as_str()) {
            self.calls.insert((self.function.clone(), method));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(last) = path.segments.last()
            && METHODS.contains(&last.ident.to_string().as_str())
        {
            self.paths.insert(last.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    /// What is inside a macro is no syntax tree: every name counts there.
    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        self.visit_tokens(found.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        let text = literal.value();
        if ENDPOINTS.iter().any(|endpoint| text.contains(endpoint)) {
            self.literals.insert(text);
        }
    }
}

/// The functions of the six methods whose first statement is not the check of the permit.
fn unguarded(source: &str) -> Vec<String> {
    struct Methods(BTreeMap<String, bool>);
    impl<'ast> Visit<'ast> for Methods {
        fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
            let name = function.sig.ident.to_string();
            if METHODS.contains(&name.as_str()) {
                self.0.insert(name, function.block.stmts.first().is_some_and(is_guard));
            }
        }
    }
    let mut methods = Methods(BTreeMap::new());
    methods.visit_file(&syn::parse_file(source).expect("the source parses"));
    let missing =
        METHODS.iter().filter(|method| !methods.0.contains_key(**method)).map(|method| (*method).to_owned());
    let late = methods.0.iter().filter(|(_, guarded)| !**guarded).map(|(name, _)| name.clone());
    missing.chain(late).collect()
}

/// `self.still_permitted(permit, …)?;`
fn is_guard(statement: &Stmt) -> bool {
    let Stmt::Expr(Expr::Try(attempt), _) = statement else { return false };
    matches!(attempt.expr.as_ref(), Expr::MethodCall(call) if call.method == "still_permitted")
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every source file, by its path below `src`.
fn sources() -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![source_folder()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(source_folder()).unwrap().to_string_lossy().replace('\\', "/");
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// All calls of the six methods in these files.
fn calls(files: &BTreeMap<String, String>) -> BTreeSet<(String, String, String)> {
    files
        .iter()
        .flat_map(|(file, source)| {
            let calls = Inventory::of(source).calls.into_iter();
            calls.map(|(function, method)| (file.clone(), function, method)).collect::<Vec<_>>()
        })
        .collect()
}

fn allowed() -> BTreeSet<(String, String, String)> {
    let known = ALLOWED.iter().chain([&INNER]);
    known.map(|(file, function, method)| ((*file).into(), (*function).into(), (*method).into())).collect()
}

#[test]
fn every_layout_write_is_on_the_allow_list() {
    assert_eq!(calls(&sources()), allowed());
}

#[test]
fn no_method_is_reached_by_its_path() {
    for (file, source) in sources() {
        let paths = Inventory::of(&source).paths;
        assert!(paths.is_empty(), "{file} names {paths:?} without calling it as a method");
    }
}

#[test]
fn each_of_the_six_methods_begins_with_its_guard() {
    assert_eq!(unguarded(&sources()[WRITES]), [] as [String; 0]);
}

#[test]
fn the_endpoints_are_named_only_where_the_guard_stands() {
    for (file, source) in sources() {
        let literals = Inventory::of(&source).literals;
        assert!(literals.is_empty() || file == WRITES || file == NAMES, "{file} names {literals:?}");
    }
}

#[test]
fn the_inventory_goes_red_for_a_new_call() {
    let mut files = sources();
    let sneaky = "async fn sneak(admin: &A, permit: &P) { if true { let f = async || admin.apply_cluster_layout(permit, 1).await; } }";
    files.insert("controller/new.rs".into(), sneaky.into());
    let new: Vec<_> = calls(&files).difference(&allowed()).cloned().collect();
    assert_eq!(new, [("controller/new.rs".into(), "sneak".into(), "apply_cluster_layout".into())]);
}

#[test]
fn the_inventory_goes_red_for_a_call_inside_a_macro() {
    let sneaky = "async fn sneak(a: &A, p: &P) { tokio::join!(a.revert_cluster_layout(p), post(\"/v2/ApplyClusterLayout\")); }";
    let inventory = Inventory::of(sneaky);
    assert_eq!(inventory.calls, [("sneak".to_owned(), "revert_cluster_layout".to_owned())].into());
    assert_eq!(inventory.literals.len(), 1);
}

#[test]
fn the_inventory_goes_red_for_a_guard_that_was_moved_down() {
    let source = &sources()[WRITES];
    let guard = "self.still_permitted(permit, LayoutOperation::RevertClusterLayout)?;";
    assert!(source.contains(guard));
    let moved = source.replace(guard, &format!("let early = self.cluster_layout().await?;\n{guard}"));
    assert_eq!(unguarded(&moved), ["revert_cluster_layout"]);
}

#[test]
fn the_inventory_goes_red_for_a_method_that_lost_its_guard() {
    let source = &sources()[WRITES];
    let guard = "self.still_permitted(permit, LayoutOperation::UpdateClusterLayout)?;";
    assert!(source.contains(guard));
    assert_eq!(unguarded(&source.replace(guard, "")), ["update_cluster_layout"]);
}

#[test]
fn the_inventory_goes_red_for_an_endpoint_that_is_named_elsewhere() {
    let inventory = Inventory::of(r#"fn f() { post("/v2/ApplyClusterLayout"); }"#);
    assert_eq!(inventory.literals.len(), 1);
}
