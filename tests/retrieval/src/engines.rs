//! Each library with the settings that rank best here.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use bm25::{Document, Language, SearchEngine, SearchEngineBuilder};
use serde_json::Value;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _};
use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};
use tantivy::{Index, IndexReader, TantivyDocument, Term};
use tool_runtime::catalog::PickOptions;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError};

use crate::tools::{Tool, split};

pub trait Ranker {
    /// The indexes of the `most` best tools, among those for which `among` returns true.
    fn rank(&self, query: &str, most: usize, among: &dyn Fn(usize) -> bool) -> Vec<usize>;
}

type Build = fn(&[Tool]) -> Box<dyn Ranker>;

pub const ENGINES: [(&str, Build); 3] = [("tool-runtime", ours), ("tantivy", tantivy), ("bm25", bm25)];

/// How often a name, a description, arguments, their descriptions and their values are repeated in the one text that is
/// indexed. Of the tried numbers, both libraries rank best with these. A field for each, with boosts, is worse in
/// `tantivy`.
const TIMES: [usize; 5] = [3, 1, 1, 1, 1];

fn text(tool: &Tool) -> String {
    let [names, descriptions, values] = &tool.arguments;
    let texts = [split(tool.own_name()), tool.description.clone(), split(names), descriptions.clone(), split(values)];
    texts.iter().zip(TIMES).flat_map(|(text, times)| [text.as_str(), "\n"].repeat(times)).collect()
}

struct Ours {
    index: tool_runtime::catalog::PickIndex,
    /// The index of each tool, by its slot.
    places: Vec<usize>,
    by_name: HashMap<String, usize>,
}

struct Never;

#[async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("never run"))
    }
}

fn ours(tools: &[Tool]) -> Box<dyn Ranker> {
    let mut ours = Ours { index: Default::default(), places: Vec::new(), by_name: HashMap::new() };
    for (at, tool) in tools.iter().enumerate() {
        let description = if tool.description.trim().is_empty() { "-" } else { &tool.description };
        let schema = tool.schema.clone();
        let dynamic = match tool.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, name)) => DynamicTool::discovered(server, name, description, schema, Arc::new(Never)),
            None => DynamicTool::new(&tool.name, description, schema, ToolEffect::ReadOnly, Arc::new(Never)),
        };
        let Ok(catalog) = ToolCatalog::builder().dynamic(dynamic).build() else { continue };
        for spec in catalog.specs() {
            let slot = ours.index.insert(spec);
            // Slots are numbered in order. A name that occurs twice keeps its slot.
            ours.places.resize(ours.places.len().max(slot + 1), at);
            ours.places[slot] = at;
            ours.by_name.insert(spec.name.to_string(), at);
        }
    }
    Box::new(ours)
}

impl Ranker for Ours {
    fn rank(&self, query: &str, most: usize, among: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let options = PickOptions::new(most).min_score(0.0);
        let picks = self.index.pick(query, &options, &|slot| among(self.places[slot]));
        picks.iter().filter_map(|pick| self.by_name.get(pick.name.as_str())).copied().collect()
    }
}

struct Tantivy {
    reader: IndexReader,
    analyzer: TextAnalyzer,
    text: Field,
    place: Field,
}

fn tantivy(tools: &[Tool]) -> Box<dyn Ranker> {
    let analyzer = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(64))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter_dynamic(StopWordFilter::new(tantivy::tokenizer::Language::English).expect("they are known"))
        .filter_dynamic(Stemmer::new(tantivy::tokenizer::Language::English))
        .build();
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default().set_tokenizer("words").set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    let text = schema.add_text_field("text", options);
    let place = schema.add_u64_field("place", STORED);
    let index = Index::create_in_ram(schema.build());
    index.tokenizers().register("words", analyzer.clone());
    let mut writer = index.writer_with_num_threads(1, 100_000_000).expect("a writer");
    for (at, tool) in tools.iter().enumerate() {
        let mut document = TantivyDocument::default();
        document.add_text(text, self::text(tool));
        document.add_u64(place, at as u64);
        writer.add_document(document).expect("a document");
    }
    writer.commit().expect("a commit");
    Box::new(Tantivy { reader: index.reader().expect("a reader"), analyzer, text, place })
}

impl Ranker for Tantivy {
    fn rank(&self, query: &str, most: usize, among: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let mut analyzer = self.analyzer.clone();
        let query = split(query);
        let mut stream = analyzer.token_stream(&query);
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        while let Some(token) = stream.next() {
            let term = TermQuery::new(Term::from_field_text(self.text, &token.text), IndexRecordOption::WithFreqs);
            clauses.push((Occur::Should, Box::new(term)));
        }
        let searcher = self.reader.searcher();
        let found = searcher
            .search(&BooleanQuery::new(clauses), &TopDocs::with_limit(most).order_by_score())
            .expect("a search");
        let place = |address| {
            let document: TantivyDocument = searcher.doc(address).expect("a document");
            document.get_first(self.place).and_then(|value| value.as_u64()).expect("a place") as usize
        };
        found.into_iter().map(|(_, address)| place(address)).filter(|at| among(*at)).collect()
    }
}

struct Bm25(SearchEngine<u32>);

fn bm25(tools: &[Tool]) -> Box<dyn Ranker> {
    let document = |(at, tool): (usize, &Tool)| Document::new(at as u32, text(tool));
    let documents: Vec<_> = tools.iter().enumerate().map(document).collect();
    Box::new(Bm25(SearchEngineBuilder::<u32>::with_documents(Language::English, documents).b(0.75).k1(1.2).build()))
}

impl Ranker for Bm25 {
    fn rank(&self, query: &str, most: usize, among: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let found = self.0.search(&split(query), most);
        found.iter().map(|found| found.document.id as usize).filter(|at| among(*at)).collect()
    }
}
