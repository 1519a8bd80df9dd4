// The page: static parts are in the HTML; summaries, probes and sessions are drawn from the data when asked for.
(async () => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  };
  const short = (text) => (text.length > 60 ? `${text.slice(0, 58)}…` : text);
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  // Theme, help and copying work before the data is there.
  const theme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("compression-eval-theme", root.dataset.theme);
    } catch {
      // Storage is blocked: the theme is not remembered.
    }
  };
  $("theme").addEventListener("click", theme);
  const toast = (text) => {
    const place = $("toast");
    (document.querySelector("dialog[open]") || document.body).append(place);
    place.textContent = text;
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => (place.textContent = ""), 2500);
  };
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      toast("Copied");
    } catch {
      // Without clipboard permission, fall back to selecting a field and copying it.
      const field = el("textarea", { class: "offscreen", "aria-hidden": "true" });
      field.value = text;
      (document.querySelector("dialog[open]") || document.body).append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      toast(done ? "Copied" : `Copy this: ${text}`);
    }
  };
  const linkTo = (hash) => `${location.href.split("#")[0]}#${hash}`;
  if (!$("data")) return; // a page without anything to draw

  let data;
  try {
    data = await unpack($("data").textContent);
  } catch (error) {
    const why = typeof DecompressionStream === "function" ? "it may have been cut short while it was saved." : "use a browser of 2023 or later.";
    $("summaries").append(el("p", { class: "warn" }, `The data of this page cannot be read (${error.message}): ${why}`));
    return;
  }
  const fixtures = data.fixtures;

  // Where facts are in a text: one regular expression for all of them, with word boundaries where a value needs them.
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const finder = (facts) => {
    const byValue = new Map();
    facts.forEach((fact, index) => {
      for (const value of fact.values) {
        const key = value.trim().replace(/\s+/g, " ").toLowerCase();
        if (key) byValue.set(key, [...(byValue.get(key) || []), index]);
      }
    });
    if (!byValue.size) return () => [];
    const edge = /[\p{L}\p{N}_]/u;
    const parts = [...byValue.keys()].sort((a, b) => b.length - a.length).map((value) => {
      const before = edge.test(value[0]) ? "(?<![\\p{L}\\p{N}_])" : "";
      const after = edge.test(value[value.length - 1]) ? "(?![\\p{L}\\p{N}_])" : "";
      return before + value.split(" ").map(escaped).join("\\s+") + after;
    });
    const pattern = new RegExp(parts.join("|"), "giu");
    return (text) =>
      [...text.matchAll(pattern)].map((match) => ({
        start: match.index,
        end: match.index + match[0].length,
        facts: byValue.get(match[0].replace(/\s+/g, " ").toLowerCase()) || [],
      }));
  };
  const finders = new Map();
  const findFacts = (fixture) => {
    if (!finders.has(fixture)) finders.set(fixture, finder(fixture.facts));
    return finders.get(fixture);
  };

  // A text with marks on it; the text itself only ever becomes text nodes.
  const paint = (text, spans) => {
    const edges = [...new Set([0, text.length, ...spans.flatMap((span) => [span.start, span.end])])].sort((a, b) => a - b);
    const pieces = [];
    for (let index = 0; index + 1 < edges.length; index++) {
      const [start, end] = [edges[index], edges[index + 1]];
      let node = document.createTextNode(text.slice(start, end));
      for (const span of spans) {
        if (span.start > start || span.end < end) continue;
        node = el(span.tag, { class: span.css || false, title: span.title || false, "data-facts": span.facts ? span.facts.join(" ") : false }, node);
      }
      pieces.push(node);
    }
    return pieces;
  };
  const factSpans = (fixture, text, lost = new Set(), gained = new Set()) =>
    findFacts(fixture)(text)
      .map((hit) => {
        const isLost = hit.facts.some((fact) => lost.has(fact));
        const isGained = hit.facts.some((fact) => gained.has(fact));
        const asked = hit.facts.some((fact) => fixture.facts[fact].probe);
        if (!isLost && !isGained && !asked) return null; // a census fact that did not move
        const word = isLost ? "lost" : isGained ? "gained" : "expected";
        return { ...hit, tag: "mark", css: isLost ? "lost" : isGained ? "gained" : "", title: `${word} fact: ${fixture.facts[hit.facts[0]].label}` };
      })
      .filter(Boolean);

  // Two texts side by side: equal parts folded, words and facts marked, moved lines shown as moved.
  const drawDiff = (host, fixture, leftText, rightText, { lost = new Set(), gained = new Set(), context = 2, names = ["base", "candidate"] } = {}) => {
    const rows = compareTexts(leftText, rightText);
    const nodes = new Array(rows.length);
    // Where a lost fact should have been: beside its first place on the left.
    const missing = new Map();
    const told = new Set();
    rows.forEach((row, index) => {
      if (row.left === null || row.kind === "same" || !lost.size) return;
      for (const hit of findFacts(fixture)(row.left)) {
        for (const fact of hit.facts) {
          const { label } = fixture.facts[fact];
          if (!lost.has(fact) || told.has(label)) continue;
          told.add(label);
          missing.set(index, [...(missing.get(index) || []), label]);
        }
      }
    });
    const cell = (index, side) => {
      const row = rows[index];
      const text = row[side];
      const css = `text ${side}`;
      if (text === null && !(side === "right" && missing.has(index))) return el("div", { class: css });
      const spans = text === null ? [] : row[`${side}Spans`].map(([start, end]) => ({ start, end, tag: side === "left" ? "del" : "ins" }));
      const node = el("div", { class: css, dir: "auto" }, ...(text === null ? [] : paint(text, [...factSpans(fixture, text, side === "left" ? lost : undefined, side === "right" ? gained : undefined), ...spans])));
      const other = side === "left" ? row.movedTo : row.movedFrom;
      if (other !== undefined) {
        node.classList.add("moved");
        const words = side === "left" ? (other > index ? "moved down ↓" : "moved up ↑") : other > index ? "moved up from below ↓" : "moved down from above ↑";
        node.append(" ", el("button", { type: "button", class: "moved-link", onclick: () => go(other) }, words));
      }
      if (side === "right" && missing.has(index)) {
        node.append(el("div", { class: "chips" }, el("span", { class: "ci" }, "missing here:"), ...missing.get(index).map((label) => el("span", { class: "chip worse missing" }, short(label)))));
      }
      return node;
    };
    const drawn = (index) => {
      const row = rows[index];
      if (row.kind === "same") nodes[index] = el("div", { class: "row same" }, cell(index, "left"));
      else nodes[index] = el("div", { class: `row ${row.kind}` }, cell(index, "left"), cell(index, "right"));
      return nodes[index];
    };
    const box = el("div", { class: "diff", role: "group", "aria-label": `${names[0]} and ${names[1]} side by side` });
    box.append(el("div", { class: "row head" }, el("span", {}, names[0]), el("span", {}, names[1])));
    const folds = [];
    for (let index = 0; index < rows.length; ) {
      let end = index;
      while (end < rows.length && rows[end].kind === "same") end++;
      const before = index === 0 ? 0 : context;
      const after = end === rows.length ? 0 : context;
      if (end - index > before + after + 2) {
        for (let at = index; at < index + before; at++) box.append(drawn(at));
        const [from, to] = [index + before, end - after];
        const fold = el("button", { type: "button", class: "fold" }, `⋯ ${plural(to - from, "equal line")}`);
        const open = () => {
          if (!fold.isConnected) return;
          const part = document.createDocumentFragment();
          for (let at = from; at < to; at++) part.append(drawn(at));
          fold.replaceWith(part);
        };
        fold.addEventListener("click", open);
        folds.push(open);
        box.append(fold);
        for (let at = to; at < end; at++) box.append(drawn(at));
        index = end;
      } else {
        for (; index < end; index++) box.append(drawn(index));
      }
      for (; index < rows.length && rows[index].kind !== "same"; index++) box.append(drawn(index));
    }
    const groups = rows.flatMap((row, index) => (row.kind !== "same" && (index === 0 || rows[index - 1].kind === "same") ? [index] : []));
    const go = (index) => {
      if (!nodes[index]) folds.forEach((open) => open());
      for (const old of all(".here, .in-here", box)) old.classList.remove("here", "in-here");
      nodes[index].classList.add("here");
      for (const by of [-1, 1]) for (let at = index + by; rows[at] && rows[at].kind !== "same"; at += by) nodes[at]?.classList.add("in-here");
      nodes[index].scrollIntoView({ block: "start" });
    };
    const place = (fact) => rows.findIndex((row) => [row.left, row.right].some((text) => text && findFacts(fixture)(text).some((hit) => hit.facts.includes(fact))));
    host.replaceChildren(box);
    if (!groups.length) host.prepend(el("p", { class: "about" }, "The two texts are equal."));
    return { groups, go, place, unfold: () => folds.forEach((open) => open()) };
  };

  // The summaries: any two runs of a fixture.
  let shown = null;
  const runsOf = (fixture) => [
    ...fixture.base_runs.map((run) => ({ ...run, side: "base", key: `b${run.number}` })),
    ...fixture.candidate_runs.map((run) => ({ ...run, side: "candidate", key: `c${run.number}` })),
  ];
  const fillRuns = (fixture) => {
    const runs = runsOf(fixture);
    for (const select of [$("s-left"), $("s-right")]) {
      const groups = ["base", "candidate"].map((side) => {
        const own = runs.filter((run) => run.side === side);
        const texts = new Map();
        for (const run of own) texts.set(run.summary, [...(texts.get(run.summary) || []), run.number + 1]);
        return own.length && el("optgroup", { label: side }, ...own.map((run) => {
          const alike = texts.get(run.summary).length - 1;
          return el("option", { value: run.key }, `${side}, run ${run.number + 1} (${run.tokens.toLocaleString("en")} tokens${alike ? `, ×${alike + 1}` : ""})`);
        }));
      });
      select.replaceChildren(...groups.filter(Boolean));
    }
    return runs;
  };
  const drawSummaries = (index, left, right, fact) => {
    const fixture = fixtures[index];
    if (!fixture) return;
    $("s-fixture").value = String(index);
    const runs = fillRuns(fixture);
    if (!runs.length) {
      $("s-facts").replaceChildren();
      $("s-diff").replaceChildren(el("p", { class: "empty" }, "No run of this fixture wrote anything."));
      $("s-place").value = "no text";
      shown = null;
      return;
    }
    const first = (side) => runs.find((run) => run.side === side);
    const pick = (key, other) => runs.find((run) => run.key === key) || other;
    const a = pick(left, first("base") || first("candidate"));
    const b = pick(right, first("candidate") || first("base"));
    $("s-left").value = a.key;
    $("s-right").value = b.key;
    const moved = (from, to) => new Set([...a.kept].flatMap((_, at) => ("1-".includes(from.kept[at]) && to.kept[at] === "0" ? [at] : [])));
    const [lost, gained] = [moved(a, b), moved(b, a)];
    const names = [a, b].map((run) => `${run.side}, run ${run.number + 1}`);
    const view = drawDiff($("s-diff"), fixture, a.summary, b.summary, { lost, gained, names });
    if (a === b || (!data.compared && !view.groups.length)) view.unfold();
    shown = { view, fixture, index, at: -1, a, b };
    $("s-place").value = view.groups.length ? plural(view.groups.length, "difference") : "no difference";
    const chips = (title, set, css) => {
      if (!set.size) return null;
      const list = el("p", { class: "chips" }, el("span", { class: "ci" }, title));
      const seen = new Set();
      for (const number of [...set]) {
        const entry = fixture.facts[number];
        if (seen.has(entry.label.toLowerCase())) continue;
        seen.add(entry.label.toLowerCase());
        if (seen.size > 24) continue;
        const place = view.place(number);
        const chip = el("button", { type: "button", class: `chip ${css}`, title: place < 0 ? `in message ${entry.messages[0]}, not in the summary` : "show where", onclick: () => (place < 0 ? openMessage(index, entry.messages[0], entry.label) : view.go(place)) }, short(entry.label));
        list.append(chip);
      }
      if (seen.size > 24) list.append(el("span", { class: "ci" }, `and ${seen.size - 24} more`));
      return list;
    };
    $("s-facts").replaceChildren(...[chips("Lost between these two:", lost, "worse"), chips("Gained:", gained, "better")].filter(Boolean));
    const wanted = fact && fixture.facts.findIndex((entry) => entry.label === fact || entry.values.includes(fact));
    const stands = fact && wanted >= 0 ? view.place(wanted) : -1;
    if (stands >= 0) {
      view.go(stands);
      shown.at = view.groups.findLastIndex((start) => start <= stands);
      if (shown.at >= 0) $("s-place").value = `difference ${shown.at + 1} of ${view.groups.length}`;
    } else if (fact) step(1);
  };
  const step = (by) => {
    if (!shown || !shown.view.groups.length) return;
    const count = shown.view.groups.length;
    shown.at = shown.at < 0 ? (by > 0 ? 0 : count - 1) : (shown.at + by + count) % count;
    shown.view.go(shown.view.groups[shown.at]);
    $("s-place").value = `difference ${shown.at + 1} of ${count}`;
  };
  const summaryLink = () => shown && `${shown.fixture.summary_anchor}/${shown.a.key}/${shown.b.key}`;

  // One message of a session, in front of the page.
  let message = null;
  const openMessage = (index, number, fact) => {
    const fixture = fixtures[index];
    if (!fixture || !fixture.messages[number]) return;
    message = { index, number, fact };
    const { role, text, candidate, base, size } = fixture.messages[number];
    const fates = [base && `base: ${base}`, candidate && `candidate: ${candidate}`].filter(Boolean).join(", ");
    $("message-title").textContent = `Message ${number} of ${fixture.messages.length - 1} · ${role}`;
    const here = fixture.facts.filter((entry) => entry.messages.includes(number) && entry.probe);
    $("message-facts").replaceChildren(
      el("span", { class: "ci" }, `${fixture.name}${fates ? ` · ${fates}` : ""} · ${size.toLocaleString("en")} characters`),
      ...[...new Set(here.map((entry) => entry.label))].slice(0, 12).map((label) => el("span", { class: "chip" }, label)),
    );
    const wanted = new Set(fixture.facts.flatMap((entry, at) => (fact && (entry.label === fact || entry.values.includes(fact)) ? [at] : [])));
    $("message-text").replaceChildren(...paint(text, factSpans(fixture, text, wanted)));
    $("message-previous").disabled = number === 0;
    $("message-next").disabled = number + 1 >= fixture.messages.length;
    if (!$("message").open) $("message").showModal();
    const mark = $("message-text").querySelector("mark.lost") || $("message-text").querySelector("mark");
    $("message-text").scrollTop = 0;
    if (mark) {
      if (fact) mark.classList.add("here");
      mark.scrollIntoView({ block: "center" });
    }
  };
  const turn = (by) => message && openMessage(message.index, message.number + by, message.fact);
  $("message-previous").addEventListener("click", () => turn(-1));
  $("message-next").addEventListener("click", () => turn(1));
  $("message-close").addEventListener("click", () => $("message").close());
  $("message-link").addEventListener("click", () => copy(linkTo(`${fixtures[message.index].message_anchor}-${message.number}`)));

  // Probes: a flat list, filtered and sorted as data, drawn a page at a time.
  const PAGE = 40;
  const probes = fixtures.flatMap((fixture, index) => fixture.probes.map((probe, place) => ({ probe, fixture, index, place })));
  const signs = { worse: "▼", better: "▲", level: "=" };
  const way = (probe) => ["worse", "better", "level"].find((tag) => probe.tags.includes(tag)) || "plain";
  const haystack = (item) => {
    if (item.text === undefined) {
      const { probe, fixture } = item;
      const parts = [fixture.name, probe.name, probe.type, probe.question, ...probe.facts.map((fact) => fact.label)];
      for (const group of [...probe.base_answers, ...probe.candidate_answers]) parts.push(group.text);
      for (const row of [...probe.base_grades, ...probe.candidate_grades]) parts.push(row.reason);
      item.text = parts.join("\n").toLowerCase();
    }
    return item.text;
  };
  const inputs = ["f-text", "f-fixture", "f-type", "f-tag", "f-sort"].map($);
  const [search, home, type, tag, sort] = inputs;
  const filters = $("filters");
  let matching = [];
  let drawn = 0;
  const rowOf = new Map();
  const factTable = (item) => {
    const { probe, fixture } = item;
    const chip = (state) => state && el("span", {}, el("span", { class: `chip fact-${state.word.replace(" ", "-")}` }, `${{ kept: "✓", lost: "✗", "not used": "○", untested: "–" }[state.word] || "?"} ${state.word}`), state.detail ? el("span", { class: "ci" }, ` ${state.detail}`) : "");
    const evidence = (fact) => fact.evidence.slice(0, 6).flatMap((number) => [
      fixture.messages[number] ? el("a", { href: `#${fixture.message_anchor}-${number}`, "data-fact": fact.label, "aria-label": `message ${number} of the session` }, `#${number}`) : `#${number}`, " ",
    ]);
    const head = ["Fact", data.compared && "Base", "Candidate", "Messages"].filter(Boolean);
    return el("table", { class: "plain facts" }, el("caption", {}, "Expected facts"),
      el("thead", {}, el("tr", {}, ...head.map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...probe.facts.map((fact) => el("tr", { class: fact.base && (fact.base.word !== fact.candidate.word || fact.base.detail !== fact.candidate.detail) ? "changed" : false },
        el("th", { scope: "row" }, el("bdi", {}, fact.label)), data.compared && el("td", { "data-label": "base" }, chip(fact.base) || ""), el("td", { "data-label": "candidate" }, chip(fact.candidate)), el("td", { "data-label": "messages" }, ...evidence(fact)))),
      ...probe.superseded.map((label) => el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, label)), el("td", { colspan: head.length - 1 }, el("span", { class: "ci" }, "superseded: an answer that states it as current is wrong"))))));
  };
  const answers = (item) => {
    const { probe, fixture } = item;
    const [left, right] = [probe.base_answers, probe.candidate_answers];
    if (!left.length && !right.length) return null;
    const box = el("div", { class: "answers" });
    const single = (title, groups) => {
      box.append(el("h4", {}, title));
      for (const group of groups) box.append(el("p", { class: "runs" }, group.runs), el("div", { class: "answer text", dir: "auto", tabindex: "0", role: "group", "aria-label": `Answer, ${group.runs}` }, ...paint(group.text, factSpans(fixture, group.text))));
    };
    if (!left.length || !right.length) single(data.offline ? "Quoted from the state for this question" : "Answers", [...left, ...right]);
    else if (left.length === 1 && right.length === 1 && left[0].text === right[0].text) single("The same answer on both sides", right);
    else {
      box.append(el("h4", {}, data.offline ? "Quoted from the states for this question, at their differences; no model answered" : "Answers, at their differences"));
      const host = el("div");
      const choose = (groups, name) => el("select", { "aria-label": `${name} answer` }, ...groups.map((group, at) => el("option", { value: at }, `${name}, ${group.runs}`)));
      const [a, b] = [choose(left, "base"), choose(right, "candidate")];
      const draw = () => {
        const lost = new Set(fixture.facts.flatMap((fact, at) => (fact.probe === probe.name ? [at] : [])).filter((at) => {
          const stands = (text) => findFacts(fixture)(text).some((hit) => hit.facts.includes(at));
          return stands(left[a.value].text) && !stands(right[b.value].text);
        }));
        drawDiff(host, fixture, left[a.value].text, right[b.value].text, { lost, context: 1, names: [`base, ${left[a.value].runs}`, `candidate, ${right[b.value].runs}`] });
      };
      for (const select of [a, b]) select.addEventListener("input", draw);
      if (left.length > 1 || right.length > 1) box.append(el("p", { class: "chips" }, a, b));
      box.append(host);
      draw();
    }
    return box;
  };
  const grades = (probe) => {
    const rows = [...probe.base_grades.map((row) => ["base", row]), ...probe.candidate_grades.map((row) => ["candidate", row])];
    if (!rows.length) return null;
    const titles = [...data.columns.slice(1, -1), data.columns[0]];
    return el("div", {},
      el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Grades of ${probe.name}` }, el("table", { class: "plain" }, el("caption", {}, "Grades, 0 to 5; equal ones are shown once"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), ...titles.map((title) => el("th", { scope: "col", class: "num" }, title)))),
        el("tbody", {}, ...rows.map(([side, row]) => el("tr", {}, el("th", { scope: "row" }, `${side}, ${row.runs}`), ...row.scores.map((score) => el("td", { class: "num" }, score))))))),
      el("ul", { class: "reasons" }, ...rows.filter(([, row]) => row.reason || row.flags.length).map(([side, row]) => el("li", {}, el("b", {}, `${side}, ${row.runs}: `), el("bdi", { class: "said" }, row.reason || "no reason given"), ...row.flags.flatMap((flag) => [" ", el("span", { class: "chip warn" }, `⚑ ${flag}`)])))));
  };
  const fill = (item, body) => {
    const { probe, fixture } = item;
    body.replaceChildren(...[
      probe.question && el("p", { class: "question" }, probe.question),
      probe.kept_verbatim && el("p", { class: "about" }, `Deliberately about content that is kept verbatim: ${probe.kept_verbatim}`),
      probe.quarantined && el("p", { class: "warn" }, `Quarantined, its scores do not count: ${probe.quarantined}`),
      ...probe.unscored.map(([side, runs, reason]) => el("p", { class: "warn" }, el("b", {}, `Unscored, ${side}, ${runs}: `), el("bdi", {}, reason))),
      probe.facts.length ? factTable(item) : null,
      answers(item),
      grades(probe),
      probe.remarks.length ? el("p", { class: "about" }, `${probe.remarks.join("; ")}.`) : null,
      el("p", { class: "permalink" }, el("button", { type: "button", onclick: () => copy(linkTo(probe.anchor)) }, "Copy link to this probe"), " ", el("a", { href: `#${fixture.summary_anchor}` }, "The summaries of this fixture")),
    ].filter(Boolean));
  };
  const probeRow = (item) => {
    if (rowOf.has(item)) return rowOf.get(item);
    const { probe, fixture } = item;
    const cell = probe.cells[0];
    const count = (word) => probe.facts.filter((fact) => fact.candidate.word === word).length;
    const chip = (name, css, text) => probe.tags.includes(name) && el("span", { class: `chip ${css}` }, text);
    const body = el("div", { class: "body" });
    const row = el("details", { class: `probe ${way(probe)}`, id: probe.anchor, "data-tags": probe.tags.join(" ") },
      el("summary", {},
        el("span", { class: "way", "aria-hidden": "true" }, signs[way(probe)] || "•"),
        el("h3", {}, probe.name), el("span", { class: "type" }, `${fixture.name} · ${probe.type}`),
        el("span", { class: "result" }, cell && cell.value !== "–" ? el("b", {}, cell.value) : probe.tags.includes("unscored") ? "unscored" : "", cell && cell.delta ? el("span", { class: cell.css === "level" ? "change" : "change moved" }, ` ${cell.delta}`) : ""),
        el("span", { class: "chips" }, chip("named", "named", "⚑ in the verdict"), chip("quarantined", "warn", "⚠ quarantined"), chip("lost", "fact-lost", `✗ ${count("lost")} lost`), chip("not-used", "fact-not-used", `○ ${count("not used")} not used`), chip("unscored", "warn", "? unscored"))),
      body);
    row.addEventListener("toggle", () => {
      if (row.open && !body.firstChild) fill(item, body);
    });
    rowOf.set(item, row);
    return row;
  };
  const draw = (upTo) => {
    const list = $("probe-list");
    for (; drawn < Math.min(upTo, matching.length); drawn++) list.append(probeRow(matching[drawn]));
    $("f-more").hidden = drawn >= matching.length;
    $("f-more").textContent = `Show ${Math.min(PAGE, matching.length - drawn)} more of ${matching.length - drawn}`;
  };
  const value = (item) => (sort.value === "bank" ? 0 : data.compared ? [item.probe.delta, item.probe.fact_delta].find((number) => number) ?? 0 : item.probe.score ?? 9);
  const apply = () => {
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    matching = probes.filter((item) =>
      (!home.value || item.fixture.anchor === home.value) && (!type.value || item.probe.type === type.value) &&
      (!tag.value || item.probe.tags.includes(tag.value)) && wanted.every((word) => haystack(item).includes(word)));
    const direction = sort.value === "best" ? -1 : 1;
    if (sort.value !== "bank") matching = matching.map((item, at) => [item, at]).sort(([a, i], [b, j]) => direction * (value(a) - value(b)) || i - j).map(([item]) => item);
    $("probe-list").replaceChildren();
    drawn = 0;
    draw(PAGE);
    const narrow = wanted.length || home.value || type.value || tag.value;
    $("f-count").value = narrow ? `${matching.length} of ${plural(probes.length, "probe")}` : plural(probes.length, "probe");
    $("nothing").hidden = matching.length > 0 || !probes.length;
    remember();
  };
  const remember = () => {
    const state = new URLSearchParams();
    for (const input of inputs) if (input.value) state.set(input.id.slice(2), input.value);
    try {
      history.replaceState(null, "", `${location.pathname}${state.size ? `?${state}` : ""}${location.hash}`);
    } catch {
      // Pages from disk may not rewrite their address in every browser.
    }
  };
  const clearFilters = () => {
    filters.reset();
    apply();
  };

  // A fixture's runs, checks, census and session, when it is opened.
  const table = (title, head, rows) => el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": title }, el("table", { class: "plain" }, el("caption", {}, title),
    el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row[0]), ...row.slice(1).map((item) => el("td", {}, item ?? "–")))))));
  const strip = (fixture, index, side) => {
    const total = fixture.messages.reduce((sum, item) => sum + item.size + 1, 0) || 1;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${side}: what became of the session, from its beginning to its end`);
    let [at, from] = [0, 0];
    fixture.messages.forEach((item, number) => {
      at += ((item.size + 1) / total) * 100;
      const next = fixture.messages[number + 1];
      if (next && next[side] === item[side]) return;
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, amount] of [["x", `${from}%`], ["width", `${at - from}%`], ["height", 14], ["class", item[side] || "unknown"]]) rect.setAttribute(name, amount);
      rect.append(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), { textContent: `to message ${number}: ${item[side]}` }));
      svg.append(rect);
      from = at;
    });
    return el("div", { class: "fate" }, el("span", { class: "fate-side" }, side), svg);
  };
  const drawFixture = (fixture, index, host) => {
    const parts = [el("p", {}, el("a", { href: `#${fixture.summary_anchor}` }, "The summaries side by side"), " · ", el("a", { href: "#probes", onclick: () => { clearFilters(); home.value = fixture.anchor; apply(); } }, plural(fixture.probes.length, "probe")))];
    const sides = ["base", "candidate"].filter((side) => fixture.messages.some((item) => item[side]));
    if (sides.length) parts.push(el("figure", { class: "fates" }, ...sides.map((side) => strip(fixture, index, side)), el("figcaption", {}, "The session from beginning to end: ", ...["verbatim", "summarised", "dropped"].flatMap((word) => [el("span", { class: `swatch ${word}` }), ` ${word === "verbatim" ? "kept verbatim" : word} `]))));
    parts.push(table(`Runs of ${fixture.name}; equal ones are shown once`, ["Side", "Runs", "Asked", "Outcome", "Tokens", "Left", "To re-read", "Time", "Notes"], fixture.runs.map((row) => [row.side, row.runs, row.graded ? "graded" : "compressed only", `${row.ok ? "✓" : "✗"} ${row.outcome}`, row.tokens, row.kept, row.refetch, row.seconds, [row.detail, ...row.notes].filter(Boolean).join("; ")])));
    if (fixture.structure.length) parts.push(table(`Structure checks of ${fixture.name}: runs that pass`, ["Check", ...(data.compared ? ["Base"] : []), "Candidate", "Meaning"], fixture.structure.map((row) => [row.check, ...(data.compared ? [row.base] : []), `${row.passed ? "✓" : "✗"} ${row.candidate}${row.changed ? ` (${row.changed})` : ""}`, row.meaning])));
    if (fixture.census.length) parts.push(table(`Census of ${fixture.name}: lost per run`, ["Kind", "In the session", ...(data.compared ? ["Base"] : []), "Candidate"], fixture.census.map((row) => [row.kind, row.total, ...(data.compared ? [row.base] : []), row.candidate])));
    if (fixture.messages.length) {
      parts.push(el("h4", {}, "Session"), el("ol", { class: "messages", start: "0" }, ...fixture.messages.map((item, number) => el("li", { class: item.candidate || false }, el("a", { href: `#${fixture.message_anchor}-${number}` }, `${number} ${item.role}`), " ", el("span", { class: "ci" }, `${item.candidate || ""} `), item.text.slice(0, 90).replace(/\s+/g, " ")))));
    }
    host.replaceChildren(...parts);
  };
  fixtures.forEach((fixture, index) => {
    const box = $(fixture.anchor);
    box.addEventListener("toggle", () => {
      const host = box.querySelector(".drawn");
      if (box.open && !host.firstChild) drawFixture(fixture, index, host);
    });
  });

  // Addresses: a message, a pair of summaries, a probe, or a place in the page.
  const route = (hash, fact) => {
    const id = decodeURIComponent(hash);
    if (!id) return false;
    const [name, left, right] = id.split("/");
    for (const [index, fixture] of fixtures.entries()) {
      const number = id.startsWith(`${fixture.message_anchor}-`) ? Number(id.slice(fixture.message_anchor.length + 1)) : NaN;
      if (Number.isInteger(number)) {
        openMessage(index, number, fact);
        return true;
      }
      if (name === fixture.summary_anchor) {
        $("summaries").scrollIntoView();
        drawSummaries(index, left, right, fact);
        return true;
      }
    }
    const item = probes.find((found) => found.probe.anchor === id);
    if (item) {
      if (!matching.includes(item)) clearFilters();
      draw(matching.indexOf(item) + 1);
      const row = probeRow(item);
      row.open = true;
      if (!row.querySelector(".body").firstChild) fill(item, row.querySelector(".body"));
      row.scrollIntoView({ block: "start" });
      row.querySelector("summary").focus({ preventScroll: true });
      return true;
    }
    const target = $(id);
    for (let at = target; at; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    if (target) target.scrollIntoView();
    return Boolean(target);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (button) copy(button.dataset.copy);
    const link = event.target.closest?.("a[href^='#']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (location.hash !== link.hash) history.pushState(null, "", link.hash);
    if ($("message").open && !link.closest("dialog")) $("message").close();
    route(link.hash.slice(1), link.dataset.fact);
  });
  addEventListener("hashchange", () => route(location.hash.slice(1)));

  const move = (by) => {
    const list = all("details.probe", $("probe-list"));
    if (!list.length) return;
    const at = list.indexOf(document.activeElement?.closest?.("details.probe"));
    const next = Math.min(Math.max(at + by, 0), list.length - 1);
    if (next === list.length - 1) draw(drawn + PAGE);
    list[next].querySelector("summary").focus({ preventScroll: true });
    list[next].scrollIntoView({ block: "nearest" });
  };
  const keys = { n: () => step(1), p: () => step(-1), j: () => move(1), k: () => move(-1), "/": () => search.focus(), "?": () => $("help").showModal(), t: theme };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if ($("message").open) {
      if (event.key === "ArrowLeft") turn(-1);
      if (event.key === "ArrowRight") turn(1);
      return;
    }
    if (event.target === search && event.key === "Escape") {
      event.preventDefault(); // the browser would empty the field and leave the list as it was
      if (search.value) {
        search.value = "";
        apply();
      } else search.blur();
      return;
    }
    if (event.target.matches("input, select, textarea")) return;
    const action = keys[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  filters.addEventListener("input", apply);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", () => setTimeout(apply));
  $("reset-empty").addEventListener("click", clearFilters);
  $("f-more").addEventListener("click", () => draw(drawn + PAGE));
  $("help-open").addEventListener("click", () => $("help").showModal());
  $("s-fixture").replaceChildren(...fixtures.map((fixture, index) => el("option", { value: index }, fixture.name)));
  $("pair").addEventListener("submit", (event) => event.preventDefault());
  $("s-fixture").addEventListener("input", () => drawSummaries(Number($("s-fixture").value)));
  for (const id of ["s-left", "s-right"]) $(id).addEventListener("input", () => drawSummaries(Number($("s-fixture").value), $("s-left").value, $("s-right").value));
  $("s-next").addEventListener("click", () => step(1));
  $("s-previous").addEventListener("click", () => step(-1));
  $("s-unfold").addEventListener("click", () => shown && shown.view.unfold());
  $("s-link").addEventListener("click", () => shown && copy(linkTo(summaryLink())));
  for (const [name, value] of new URLSearchParams(location.search)) {
    const input = $(`f-${name}`);
    if (inputs.includes(input)) input.value = value;
  }
  apply();
  drawSummaries(0);
  if (location.hash) route(location.hash.slice(1));
  document.documentElement.dataset.ready = "yes";
})();
