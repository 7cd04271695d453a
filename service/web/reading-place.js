// Keeps what a person reads where it is on the screen while text arrives above it.

/** Return an object that follows the newest text until the person scrolls, selects or clicks. */
export function createReadingPlace(onChange) {
  let isFollowing = false;
  let expected = window.scrollY;

  function setFollowing(wanted) {
    if (isFollowing === wanted) return;
    isFollowing = wanted;
    // The browser's own anchoring would look like a person's scrolling.
    document.documentElement.classList.toggle("is-following", wanted);
    onChange(wanted);
  }

  const stopFollowing = () => setFollowing(false);

  function onScroll() {
    if (Math.abs(window.scrollY - expected) > 3) stopFollowing();
    expected = window.scrollY;
  }

  const onSelect = () => {
    if (!document.getSelection()?.isCollapsed) stopFollowing();
  };

  window.addEventListener("scroll", onScroll, { passive: true });
  document.addEventListener("selectionchange", onSelect);

  /** Return the block the person most likely reads: the finished one that fills most of the screen. */
  function findAnchor(root) {
    const top = topEdge();
    let best = null;
    let most = 0;
    for (const block of root.querySelectorAll("[data-anchor], .turn")) {
      const box = block.getBoundingClientRect();
      if (box.top >= window.innerHeight && best) break;
      const seen = Math.min(box.bottom, window.innerHeight) - Math.max(box.top, top);
      const weight = block.classList.contains("is-live") ? seen / 100 : seen;
      if (seen > 4 && weight > most) [best, most] = [block, weight];
    }
    return best && innerAnchor(best, top);
  }

  function innerAnchor(block, top) {
    const body = block.querySelector(".turn-body");
    if (!body || block.getBoundingClientRect().top >= top) return block;
    for (const child of body.children) if (child.getBoundingClientRect().bottom > top) return child;
    return block;
  }

  return {
    get isFollowing() { return isFollowing; },
    stopFollowing,
    /** Change the page without moving what is on screen. */
    keep(root, change) {
      const anchor = isFollowing ? null : findAnchor(root);
      const before = anchor?.getBoundingClientRect().top;
      change();
      if (anchor?.isConnected) {
        const moved = anchor.getBoundingClientRect().top - before;
        if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: "instant" });
      }
      expected = window.scrollY;
    },
    scrollTo(node) {
      const top = Math.max(0, node.getBoundingClientRect().top + window.scrollY - topEdge() - 12);
      window.scrollTo({ top, behavior: "instant" });
      expected = window.scrollY;
    },
    follow(node) {
      setFollowing(true);
      if (node) this.scrollTo(node);
    },
    stop() {
      document.documentElement.classList.remove("is-following");
      window.removeEventListener("scroll", onScroll);
      document.removeEventListener("selectionchange", onSelect);
    },
  };
}

/** Return the lower edge of what is stuck to the top of the window. */
export function topEdge() {
  const bar = document.querySelector(".rounds-rail");
  if (!bar) return 0;
  const box = bar.getBoundingClientRect();
  return box.width > window.innerWidth * 0.6 && box.top <= 4 ? Math.max(0, box.bottom) : 0;
}
