// Marks checked claims and quotes where they stand in a text.

const squeeze = (text) => text.replace(/\s+/g, " ");

/** Find a passage in the text nodes of an element; return the pieces of nodes it covers. */
function findPassage(root, wanted) {
  const nodes = [];
  let all = "";
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data;
    nodes.push({ node: walker.currentNode, start: all.length, end: all.length + text.length });
    all += text.replace(/\s/g, " ");
  }
  const start = all.toLowerCase().indexOf(squeeze(wanted).trim().toLowerCase());
  if (start < 0) return [];
  const end = start + squeeze(wanted).trim().length;
  return nodes.filter((each) => each.end > start && each.start < end)
    .map((each) => ({ node: each.node, from: Math.max(0, start - each.start), to: Math.min(each.node.length, end - each.start) }));
}

function wrap({ node, from, to }, className, title) {
  const middle = node.splitText(from);
  middle.splitText(to - from);
  const mark = document.createElement("mark");
  mark.className = className;
  mark.title = title;
  middle.replaceWith(mark);
  mark.append(middle);
}

function markPassage(root, text, className, title) {
  if (!text || text.length < 8) return;
  for (const piece of findPassage(root, text)) wrap(piece, className, title);
}

/** Mark the quotes and the checked claims of a turn; a second call changes nothing. */
export function markQuotes(root, turn) {
  const wanted = `${turn.quotes.length}.${turn.checks?.length || 0}`;
  if (root.dataset.marked === wanted) return;
  root.dataset.marked = wanted;
  for (const mark of root.querySelectorAll("mark.checked")) mark.replaceWith(...mark.childNodes);
  root.normalize();
  for (const quote of turn.quotes) {
    if (quote.status === "from_debate") continue;
    const word = quote.status.replace("_", " ");
    markPassage(root, quote.text, `checked checked-${quote.status}`, `Quote ${word}${quote.where ? ` in ${quote.where}` : ""}`);
  }
  for (const claim of turn.checks || []) markPassage(root, claim.claim, `checked checked-${claim.verdict}`, `Fact check: ${claim.verdict}. ${claim.why || ""}`);
}
