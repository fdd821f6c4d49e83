//! The parts of an HTML page.

use super::lanes::Lanes;
use super::{Stack, Table, escape};

const STYLE: &str = "\
:root{--ink:#1c2733;--soft:#5b6875;--line:#d9dfe5;--ground:#f4f6f8;--accent:#0072b2;--bad:#b00020}\
*{box-sizing:border-box}\
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;color:var(--ink);\
margin:0 auto;max-width:68rem;padding:1.5rem 1.25rem 3rem;background:#fff}\
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2.2em 0 .5em;\
padding-top:.7em;border-top:1px solid var(--line)}h3{font-size:1rem;margin:1.4em 0 .4em}\
p{max-width:46rem;margin:.5em 0}.soft,figcaption small{color:var(--soft)}.bad{color:var(--bad);font-weight:600}\
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.2rem,1fr));gap:.7rem;margin:1.2rem 0}\
.tile{background:var(--ground);border-radius:.5rem;padding:.6rem .65rem}\
.tile b{display:block;font-size:1.2rem;line-height:1.35;white-space:nowrap;font-variant-numeric:tabular-nums}\
.tile span{color:var(--soft);font-size:.85rem}.tile.bad b{color:var(--bad)}\
.scroll{margin:.6rem 0}.scroll,.wide{overflow-x:auto;background:\
linear-gradient(to right,#fff 35%,#fff0) left -2px top/2.6rem 100% no-repeat local,\
linear-gradient(to left,#fff 35%,#fff0) right -2px top/2.6rem 100% no-repeat local,\
linear-gradient(to right,#1c273340,#1c273300) left/.8rem 100% no-repeat scroll,\
linear-gradient(to left,#1c273340,#1c273300) right/.8rem 100% no-repeat scroll}\
.many{max-height:34rem;overflow-y:auto}.many th{position:sticky;top:0;background:#fff;z-index:1}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.875rem;white-space:nowrap}\
th,td{padding:.28rem .75rem;text-align:right;border-bottom:1px solid var(--line)}\
th{color:var(--soft);font-weight:600;vertical-align:bottom;white-space:normal}td.l,th.l{text-align:left}\
td.l:first-child,th.l:first-child{padding-left:0}tbody tr:last-child td{border-bottom:0}\
td.wrap{white-space:normal;min-width:16rem}.parts td.l{white-space:normal}\
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1.6rem 2.2rem}\
figure{margin:0;min-width:0;break-inside:avoid}figcaption{font-weight:600;margin-bottom:.35rem}\
.along{margin:0 0 2rem}\
figcaption small{display:block;font-weight:400;font-size:.85rem}\
svg.plot{display:block;width:100%;height:auto;max-width:34rem}\
svg.plot text{font:11px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#5b6875}\
svg.lanes text{font:11px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#46525e}\
svg.lanes .mark{font-weight:600}svg.plot .mark,svg.lanes .mark{fill:#1c2733;stroke:#fff;stroke-width:3px;paint-order:stroke}\
.key{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;padding:0;margin:.3rem 0 0;font-size:.85rem}\
.swatch{display:inline-block;width:.8em;height:.8em;border-radius:.15em;margin-right:.45em;\
vertical-align:-.05em;print-color-adjust:exact;-webkit-print-color-adjust:exact}\
.wide svg{max-width:100%;height:auto;min-width:54rem}.wide svg.lanes{min-width:56rem}.wide svg.sequence>rect:first-of-type{fill:none}\
svg.plot.own{max-width:var(--own);min-width:min(var(--least),var(--own))}\
code,pre{font:.85em/1.45 ui-monospace,'Liberation Mono',Menlo,monospace}\
pre{overflow-x:auto;background:var(--ground);padding:.8rem;border-radius:.5rem}\
footer{margin-top:3em;color:var(--soft);font-size:.85rem}\
@media(max-width:56rem){.wide:has(.sequence,.lanes)::before{content:'scrolls sideways \\2192';display:block;\
position:sticky;left:0;width:max-content;color:var(--soft);font-size:.85rem}}\
@media(max-width:34rem){body{font-size:15px;padding:1rem .9rem 2rem}th,td{padding:.28rem .5rem}\
.scroll th:first-child,.scroll td:first-child{position:sticky;left:0;background:#fff;max-width:45vw;white-space:normal}\
td.wrap{min-width:13rem}}\
@media print{body{max-width:none;padding:0;font-size:9.5pt}.wide svg,svg.plot.own{min-width:0}\
.scroll,.wide{overflow:visible;background:none;max-height:none}.wide::before{display:none!important}pre{white-space:pre-wrap;\
overflow-wrap:anywhere}td.wrap{min-width:9rem}h2,h3,h2+p,p:has(+.scroll),p:has(+.figures){break-after:avoid}\
tr,.key,.tile{break-inside:avoid}table{font-size:8pt}th,td{padding:.2rem .45rem}td.l{white-space:normal}\
.figures{grid-template-columns:1fr 1fr;gap:1rem 1.6rem}.figures th,.figures td{padding:.15rem .3rem}\
.figures>figure:only-child{grid-column:1/-1;max-width:30rem}details{display:none}}";

/// Maximum number of rows of a table that does not scroll.
const MOST_ROWS: usize = 25;

/// A prominent number.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The number, with its unit.
    pub value: String,
    /// Name of the number.
    pub name: String,
    /// Whether the tile is highlighted as a problem.
    pub bad: bool,
}

/// A page to which parts are added from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    out: String,
}

impl Page {
    /// Begins a page with this title.
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        let out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        Self { out }
    }

    /// Begins a section with its heading.
    pub fn section(&mut self, heading: &str) {
        self.out += &format!("<h2>{}</h2>\n", escape(heading));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, words: &str) {
        self.out += &format!("<p>{}</p>\n", escape(words));
    }

    /// Adds a paragraph in red.
    pub fn warning(&mut self, words: &str) {
        self.out += &format!("<p class=\"bad\">{}</p>\n", escape(words));
    }

    /// Adds a paragraph in a paler colour.
    pub fn note(&mut self, words: &str) {
        self.out += &format!("<p class=\"soft\">{}</p>\n", escape(words));
    }

    /// Adds HTML as it is, such as a script.
    pub fn html(&mut self, html: &str) {
        self.out += html;
    }

    /// Adds figures side by side.
    pub fn tiles(&mut self, tiles: &[Tile]) {
        self.out += "<div class=\"tiles\">\n";
        for Tile { value, name, bad } in tiles {
            let class = if *bad { "tile bad" } else { "tile" };
            let (value, name) = (escape(value), escape(name));
            self.out +=
                &format!("<div class=\"{class}\"><b>{value}</b><span>{name}</span></div>\n");
        }
        self.out += "</div>\n";
    }

    /// Adds a table, which scrolls if it is too wide or has more than 25 rows.
    pub fn table(&mut self, table: &Table) {
        let class = if table.rows() > MOST_ROWS { "scroll many" } else { "scroll" };
        self.out += &format!("<div class=\"{class}\">{}</div>\n", table.html());
    }

    /// Adds a table that is folded under `summary`. Printed pages leave out the table.
    pub fn more(&mut self, summary: &str, table: &Table) {
        let (summary, table) = (escape(summary), table.html());
        self.out += &format!(
            "<details><summary>{summary}</summary><div class=\"scroll\">{table}</div></details>\n"
        );
    }

    /// Adds pictures side by side if there is room: caption, a line below it, and SVG.
    pub fn figures(&mut self, figures: &[(String, String, String)]) {
        self.out += "<div class=\"figures\">\n";
        for (caption, small, picture) in figures {
            self.out += &format!("<figure>{}{picture}</figure>\n", title(caption, small));
        }
        self.out += "</div>\n";
    }

    /// Adds stacked bars side by side if there is room.
    pub fn stacks(&mut self, stacks: &[Stack]) {
        let figure = |stack: &Stack| (stack.title.clone(), stack.note.clone(), stack.html());
        self.figures(&stacks.iter().map(figure).collect::<Vec<_>>());
    }

    /// Adds a picture with its own width, which scrolls if it is too wide.
    pub fn wide(&mut self, caption: &str, small: &str, svg: &str) {
        let head = title(caption, small);
        self.out += &format!("<figure>{head}<div class=\"wide\">{svg}</div></figure>\n");
    }

    /// Adds lanes, which scroll if they are too wide, and their key.
    pub fn lanes(&mut self, caption: &str, small: &str, lanes: &Lanes) {
        let (head, svg, key) = (title(caption, small), lanes.svg(), lanes.key());
        self.out += &format!(
            "<figure class=\"along\">{head}<div class=\"wide\">{svg}</div>{key}</figure>\n"
        );
    }

    /// Adds text that is folded under `summary`, such as data for programs. Printed pages leave out
    /// the text.
    pub fn details(&mut self, summary: &str, text: &str) {
        let (summary, text) = (escape(summary), escape(text));
        self.out += &format!("<details><summary>{summary}</summary><pre>{text}</pre></details>\n");
    }

    /// Adds preformatted text, which is printed too.
    pub fn preformatted(&mut self, text: &str) {
        self.out += &format!("<pre>{}</pre>\n", escape(text));
    }

    /// Returns the whole page.
    pub fn finish(mut self, foot: &str) -> String {
        self.out += &format!("<footer>{}</footer>\n</body>\n</html>\n", escape(foot));
        self.out
    }
}

fn title(caption: &str, small: &str) -> String {
    let small = match small {
        "" => String::new(),
        small => format!("<small>{}</small>", escape(small)),
    };
    format!("<figcaption>{}{small}</figcaption>", escape(caption))
}
