"use strict";
// The page works without this; it adds filters, sorting, the keyboard and the way from a fact to its evidence.
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const probes = all("details.probe");
  const fixtures = all("article.fixture");
  const rows = new Map(all("tr[data-probe]").map((row) => [row.dataset.probe, row]));
  const order = new Map([...fixtures, ...probes].map((item, index) => [item, index]));
  const words = new Map();
  const text = (probe) => {
    if (!words.has(probe)) words.set(probe, probe.textContent.toLowerCase());
    return words.get(probe);
  };
  const inputs = ["f-text", "f-fixture", "f-type", "f-tag", "f-sort"].map($);
  const [search, fixture, type, tag, sort] = inputs;
  const filters = $("filters");
  const shown = () => probes.filter((probe) => !probe.hidden);

  const filter = () => {
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    for (const probe of probes) {
      const home = probe.closest("article.fixture").id;
      probe.hidden = !(
        (!fixture.value || home === fixture.value) &&
        (!type.value || probe.dataset.type === type.value) &&
        (!tag.value || probe.dataset.tags.split(" ").includes(tag.value)) &&
        wanted.every((word) => text(probe).includes(word))
      );
      const row = rows.get(probe.id);
      if (row) row.hidden = probe.hidden;
    }
    const narrow = wanted.length || fixture.value || type.value || tag.value;
    for (const item of fixtures) item.hidden = Boolean(narrow) && !all("details.probe:not([hidden])", item).length;
    const count = shown().length;
    $("f-count").value = narrow ? `${count} of ${probes.length} probes` : `${probes.length} probes`;
    $("nothing").hidden = count > 0 || !probes.length;
  };

  const key = (item, name) => (item.dataset[name] ? Number(item.dataset[name]) : Infinity);
  const compare = (a, b) => {
    if (sort.value === "worst") return key(a, "delta") - key(b, "delta") || order.get(a) - order.get(b);
    if (sort.value === "best") {
      const value = (item) => (item.dataset.delta ? -Number(item.dataset.delta) : Infinity);
      return value(a) - value(b) || order.get(a) - order.get(b);
    }
    if (sort.value === "low") return key(a, "score") - key(b, "score") || order.get(a) - order.get(b);
    return order.get(a) - order.get(b);
  };
  // Infinity minus Infinity is not a number, which counts as equal here: what has no number keeps its place.
  const arrange = () => {
    $("fixture-list").append(...[...fixtures].sort(compare));
    for (const item of fixtures) {
      const sorted = all("details.probe", item).sort(compare);
      const list = item.querySelector(".probes");
      list.append(...sorted);
      const body = item.querySelector("table.heat tbody");
      if (body) body.append(...sorted.map((probe) => rows.get(probe.id)).filter(Boolean));
    }
    probes.sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
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
  const apply = () => {
    filter();
    arrange();
    remember();
  };

  const openAll = () => {
    const list = shown();
    const open = list.some((probe) => !probe.open);
    for (const probe of list) probe.open = open;
    $("f-open").textContent = open ? "Close all" : "Open all";
  };

  const reveal = (id, mark) => {
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let item = target; item; item = item.parentElement) {
      if (item.hidden && item.matches("details.probe, article.fixture")) {
        filters.reset();
        apply();
      }
      if (item instanceof HTMLDetailsElement) item.open = true;
    }
    const exact = mark && all("mark", target).find((item) => item.dataset.fact === mark);
    (exact || target).scrollIntoView({ block: exact ? "center" : "start" });
    for (const old of all(".here")) old.classList.remove("here");
    (exact || target).classList.add("here");
    (target.querySelector(":scope > summary") || target).focus({ preventScroll: true });
  };

  let current = -1;
  const step = (by) => {
    const list = shown();
    if (!list.length) return;
    const focused = document.activeElement?.closest?.("details.probe");
    if (focused) current = list.indexOf(focused);
    current = Math.min(Math.max(current + by, 0), list.length - 1);
    const summary = list[current].querySelector("summary");
    summary.focus({ preventScroll: true });
    list[current].scrollIntoView({ block: "nearest" });
  };

  const theme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("compression-eval-theme", root.dataset.theme);
    } catch {
      // Not remembered, then.
    }
  };

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    "/": () => search.focus(),
    "?": () => $("help").showModal(),
    e: openAll,
    t: theme,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const action = keys[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || event.ctrlKey || event.metaKey) return;
    const id = decodeURIComponent(link.hash.slice(1));
    if (link.dataset.mark) {
      event.preventDefault();
      history.pushState(null, "", `#${id}`);
    }
    reveal(id, link.dataset.mark);
  });
  addEventListener("hashchange", () => reveal(decodeURIComponent(location.hash.slice(1))));

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = shown().filter((probe) => !probe.open && probe.dataset.tags.split(" ").includes("named"));
    for (const probe of opened) probe.open = true;
  });
  addEventListener("afterprint", () => {
    for (const probe of opened) probe.open = false;
  });

  filters.addEventListener("input", apply);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", () => setTimeout(apply));
  $("reset-empty").addEventListener("click", () => filters.reset());
  $("f-open").addEventListener("click", openAll);
  $("theme").addEventListener("click", theme);
  $("help-open").addEventListener("click", () => $("help").showModal());

  for (const [name, value] of new URLSearchParams(location.search)) {
    const input = $(`f-${name}`);
    if (inputs.includes(input)) input.value = value;
  }
  apply();
  if (location.hash) reveal(decodeURIComponent(location.hash.slice(1)));
})();
