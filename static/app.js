// What htmx leaves to the page: where the focus goes, which live updates must wait, what is kept
// over a log-in, and the keyboard. Everything works without this file; nothing decides by itself.
"use strict";

(() => {
  const DRAFT = "flowsite-draft:";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const live = (element) => element instanceof Element && element.matches("[data-live]");

  // -- focus ---------------------------------------------------------------------------------

  // To the first field that is wrong, otherwise to what says what happened.
  function focusResult() {
    const wrong = document.querySelector("[data-invalid], main [aria-invalid='true']");
    let found = wrong || document.querySelector("[data-focus]");
    if (found && found.matches("[role='radiogroup']")) found = found.querySelector("input");
    if (found) found.focus();
  }

  // -- live updates --------------------------------------------------------------------------

  // Someone reads or works here: has the focus in it, selects text in it, or opened a long text.
  function inUse(element) {
    const selection = document.getSelection();
    return (
      element.contains(document.activeElement) ||
      (!selection.isCollapsed && element.contains(selection.anchorNode)) ||
      element.querySelector("details.long[open]") !== null
    );
  }

  let opened = [];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (live(event.detail.elt) && document.hidden) event.preventDefault();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const element = event.detail.requestConfig.elt;
    if (!live(element) || !event.detail.shouldSwap) return;
    if (inUse(element)) {
      event.detail.shouldSwap = false;
      all("[data-stale]", element).forEach((note) => (note.hidden = false));
      return;
    }
    opened = all("details[open][id]", element).map((details) => details.id);
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.contains(document.activeElement)) event.detail.shouldSwap = false;
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    const element = event.detail.requestConfig.elt;
    if (live(element)) {
      for (const id of opened) {
        const details = document.getElementById(id);
        if (details) details.open = true;
      }
      opened = [];
    } else if (element.matches("form[method='post']")) {
      focusResult();
    }
  });

  // -- what went wrong -----------------------------------------------------------------------

  function say(text, detail) {
    const place = document.getElementById("messages");
    if (!place) return;
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.tabIndex = -1;
    notice.dataset.trouble = "";
    const words = document.createElement("div");
    for (const line of [text, detail]) {
      if (!line) continue;
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      words.append(paragraph);
    }
    notice.append(words);
    place.replaceChildren(notice);
    return notice;
  }

  function trouble(event) {
    if (live(event.detail.elt)) {
      if (!document.querySelector("[data-trouble]")) {
        say("Flowsite can't be reached. This page may be out of date; it goes on by itself.");
      }
      return;
    }
    const answer = event.detail.xhr ? event.detail.xhr.responseText : "";
    const page = new DOMParser().parseFromString(answer || "", "text/html");
    const title = page.querySelector("[data-error] h1");
    const reason = page.querySelector("[data-error] p");
    const notice = title
      ? say(`${title.textContent}.`, reason && reason.textContent)
      : say("No answer came.", "What you typed is still here. Look whether it was done, then try again.");
    if (notice) notice.focus();
  }

  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, trouble);
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) all("[data-trouble]").forEach((notice) => notice.remove());
  });

  // -- what was typed is kept over a log-in --------------------------------------------------

  const keepable = (form) =>
    all("input, textarea, select", form).filter(
      (field) => field.name && !["hidden", "password", "submit"].includes(field.type),
    );

  function keep(form) {
    const fields = keepable(form).map((field) =>
      ["checkbox", "radio"].includes(field.type)
        ? [field.name, field.value, field.checked]
        : [field.name, field.value],
    );
    const draft = { user: document.body.dataset.user, fields };
    sessionStorage.setItem(DRAFT + location.pathname, JSON.stringify(draft));
  }

  function putBack() {
    const key = DRAFT + location.pathname;
    const saved = sessionStorage.getItem(key);
    if (!saved || !("user" in document.body.dataset)) return;
    sessionStorage.removeItem(key);
    const draft = JSON.parse(saved);
    const form = document.querySelector("form[data-draft]");
    if (!form || draft.user !== document.body.dataset.user) return;
    for (const field of keepable(form)) {
      const boxed = ["checkbox", "radio"].includes(field.type);
      const found = draft.fields.find(
        ([name, value]) => name === field.name && (!boxed || value === field.value),
      );
      if (!found) continue;
      if (boxed) field.checked = found[2];
      else field.value = found[1];
    }
  }

  // The page is about to be left, for the log-in or to be loaded anew.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { xhr } = event.detail;
    const login = (xhr.getResponseHeader("HX-Redirect") || "").startsWith("/accounts/login/");
    if (!login && xhr.getResponseHeader("HX-Refresh") !== "true") return;
    const form = document.querySelector("form[data-draft]");
    if (form) keep(form);
  });

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-forgets]")) {
      Object.keys(sessionStorage)
        .filter((key) => key.startsWith(DRAFT))
        .forEach((key) => sessionStorage.removeItem(key));
    }
  });

  // -- keyboard ------------------------------------------------------------------------------

  function move(step) {
    const links = all(".rows .row-title");
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
    if (next) next.focus();
  }

  const goTo = (selector) => {
    const element = document.querySelector(selector);
    if (element) element.focus();
    return element !== null;
  };

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    a: () => goTo("[data-key='a']"),
    x: () => goTo("[data-key='x']"),
    "/": () => goTo("[data-search]"),
    "?": () => document.querySelector("dialog.shortcuts")?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable], dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // -- times grow while a page is open -------------------------------------------------------

  // As the server writes them: see span() in runs/templatetags/ui.py.
  function span(seconds) {
    const minutes = Math.floor(seconds / 60);
    const hours = Math.floor(minutes / 60);
    const days = Math.floor(hours / 24);
    if (minutes < 1) return "under a minute";
    if (hours < 1) return `${minutes} min`;
    if (days < 1) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
    return hours % 24 && days < 7 ? `${days} d ${hours % 24} h` : `${days} d`;
  }

  setInterval(() => {
    for (const time of all("time[data-ago], time[data-since]")) {
      const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
      const ago = "ago" in time.dataset;
      time.textContent = !ago ? span(seconds) : seconds < 60 ? "just now" : `${span(seconds)} ago`;
    }
  }, 30_000);

  // ------------------------------------------------------------------------------------------

  document.addEventListener("DOMContentLoaded", () => {
    const kept = Object.keys(sessionStorage).some((key) => key.startsWith(DRAFT));
    all("[data-kept]").forEach((note) => (note.hidden = !kept));
    putBack();
    focusResult();
  });
})();
