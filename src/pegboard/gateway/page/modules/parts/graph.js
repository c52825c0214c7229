// A picture of how things are linked: laid out by forces, drawn on a canvas, used with a pointer or by keyboard.
//
// Springs hold what is linked together, everything pushes away what is near, and a weak pull keeps all in the middle.
// Beside the picture there has to be a list of the same facts: whoever sees no picture reads that.
import { html, useEffect, useId, useRef, useState } from "./html.js";
import { go } from "./route.js";
import { Button } from "./ui.js";

/** @typedef {{key: string, written: boolean, summary: string}} GraphNode */
/** @typedef {{from: string, to: string}} GraphLink */
/**
 * @typedef {GraphNode & {x: number, y: number, dx: number, dy: number, h: number, v: number, size: number, linked: Set<Spot>, parent?: Spot}} Spot
 *   where it is, how it moves, and where that is on the canvas
 */

const LENGTH = 60;
// The square of how far apart nodes push each other.
const FAR = 57600;
const PUSH = 160;
const PULL = 0.05;
const COOLING = 0.977;
const STILL = 0.006;
// Milliseconds of work in a frame.
const SLICE = 8;
// Names, where there are few nodes and where there are many: so many by the number of nodes.
const NAMES = 1500;
// How far beside a node a pointer may be, and how far it moves until it drags.
const REACH = 14;
const SLIP = 5;
const ZOOMS = [["Zoom in", "+", 1.4], ["Zoom out", "−", 0.7]];

/** @param {Spot} spot @param {number} x @param {number} y @param {number} force */
function push(spot, x, y, force) {
  spot.dx += x * force;
  spot.dy += y * force;
}

/** One step of the layout. @param {Spot[]} spots @param {[Spot, Spot][]} lines @param {number} heat */
function tick(spots, lines, heat) {
  for (const [a, b] of lines) {
    const x = b.x + b.dx - a.x - a.dx || 0.1;
    const y = b.y + b.dy - a.y - a.dy;
    const force = (1 - LENGTH / Math.hypot(x, y)) * heat / Math.min(a.linked.size, b.linked.size);
    // What has many links moves less.
    const share = a.linked.size / (a.linked.size + b.linked.size);
    push(b, x, y, -force * share);
    push(a, x, y, force * (1 - share));
  }
  spots.forEach((spot, index) => {
    for (const other of spots.slice(index + 1)) {
      const x = other.x - spot.x || 0.1;
      const y = other.y - spot.y;
      const square = x * x + y * y;
      if (square > FAR) continue;
      const force = (PUSH * heat) / Math.max(square, 9);
      push(other, x, y, force);
      push(spot, x, y, -force);
    }
  });
  for (const spot of spots) {
    push(spot, spot.x, spot.y, -PULL * heat);
    spot.x += spot.dx *= 0.6;
    spot.y += spot.dy *= 0.6;
  }
}

/** What is on the canvas, and what is done there. @param {HTMLCanvasElement} canvas @param {(words: string) => void} say */
function paint(canvas, say) {
  const ink = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  let spots = /** @type {Spot[]} */ ([]);
  let lines = /** @type {[Spot, Spot][]} */ ([]);
  let shape = "";
  /** @type {(key: string) => string} */
  let hrefOf;
  let heat = 0;
  let [zoom, left, top, width, height] = [1, 0, 0, 0, 0];
  // Until somebody moves it, the whole is in view.
  let isFitted = true;
  let frame = 0;
  /** @type {Spot | undefined} */
  let at;
  /** @type {Spot | undefined} */
  let under;
  /** @type {{x: number, y: number, isMoved: boolean} | undefined} */
  let held;
  const redraw = () => { frame ||= requestAnimationFrame(work); };

  function work() {
    frame = 0;
    const until = performance.now() + SLICE;
    while (heat > STILL && performance.now() < until) tick(spots, lines, heat *= COOLING);
    const isMoving = heat > STILL;
    // Whoever wants no motion sees it when it is done.
    if (!isMoving || !matchMedia("(prefers-reduced-motion: reduce)").matches) draw();
    canvas.dataset.state = isMoving ? "moving" : "settled";
    if (isMoving) redraw();
  }

  function draw() {
    ({ clientWidth: width, clientHeight: height } = canvas);
    const ratio = devicePixelRatio;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    ink.scale(ratio, ratio);
    if (isFitted) {
      const range = (/** @type {number[]} */ all) => [Math.min(...all), Math.max(...all)];
      const [[x, endX], [y, endY]] = [range(spots.map((spot) => spot.x)), range(spots.map((spot) => spot.y))];
      // Above there are the buttons, and a name below.
      zoom = Math.min(2.2, (width - 60) / (endX - x), (height - 90) / (endY - y));
      left = (width - (x + endX) * zoom) / 2;
      top = (height + 30 - (y + endY) * zoom) / 2;
    }
    for (const spot of spots) Object.assign(spot, { h: spot.x * zoom + left, v: spot.y * zoom + top });
    // The style sheet gives the colours by properties that a canvas has no other use for.
    const { color, backgroundColor: paper, textDecorationColor: edge, caretColor: accent, fontFamily } = getComputedStyle(canvas);
    const focused = document.activeElement === canvas ? at : undefined;
    const lit = under ?? focused;
    const set = (/** @type {string} */ fill, stroke = fill, lineWidth = 1, globalAlpha = 1) => Object.assign(ink, { fillStyle: fill, strokeStyle: stroke, lineWidth, globalAlpha });
    const circle = (/** @type {Spot} */ { h, v }, /** @type {number} */ radius) => {
      ink.beginPath();
      ink.arc(h, v, radius, 0, 7);
      ink.fill();
      ink.stroke();
    };
    for (const [a, b] of lines) {
      if (a === lit || b === lit) set(accent);
      else set(edge, edge, 1, 0.45);
      const turn = Math.atan2(b.v - a.v, b.h - a.h);
      const [x, y] = [b.h - Math.cos(turn) * b.size, b.v - Math.sin(turn) * b.size];
      ink.beginPath();
      ink.moveTo(a.h, a.v);
      // With a tip where it leads to.
      for (const [side, length] of [[0, 0], [2.75, 7], [3.53, 7], [0, 0]]) ink.lineTo(x + Math.cos(turn + side) * length, y + Math.sin(turn + side) * length);
      ink.fill();
      ink.stroke();
    }
    if (focused) {
      set(paper, accent, 2.5);
      circle(focused, focused.size + 4);
    }
    for (const spot of spots) {
      const tone = spot === spots[0] || spot === lit ? accent : edge;
      if (!spot.written) set(paper, tone, 1.5);
      else set(tone, paper);
      circle(spot, spot.size);
    }
    // A name is read over lines and tips, too.
    set(color, paper, 5);
    ink.lineJoin = "round";
    ink.font = `12px ${fontFamily}`;
    ink.textAlign = "center";
    /** @type {number[][]} */
    const taken = [];
    for (const { key, h, v, size } of [lit ?? spots[0], ...spots.slice(0, NAMES / spots.length)]) {
      // The end of a name says more than its beginning.
      const words = key.length > 28 ? `…${[...key].slice(-26).join("")}` : key;
      const half = ink.measureText(words).width / 2 + 4;
      const x = Math.max(Math.min(h, width - half), half);
      const y = v + size + 13;
      if (taken.some((name) => Math.abs(name[0] - x) < name[2] + half && Math.abs(name[1] - y) < 14)) continue;
      taken.push([x, y, half]);
      ink.strokeText(words, x, y);
      ink.fillText(words, x, y);
    }
    // Where the focus is, for whoever cannot ask the canvas.
    canvas.dataset.at = at ? `${Math.round(at.h)},${Math.round(at.v)}` : "";
  }

  /** @param {number} factor @param {number} [x] around which place @param {number} [y] */
  function scale(factor, x = width / 2, y = height / 2) {
    left = x - (x - left) * factor;
    top = y - (y - top) * factor;
    zoom *= factor;
    isFitted = false;
    redraw();
  }

  /** The nodes behind one, around it; without one, the first. @param {Spot | undefined} parent */
  function behind(parent) {
    const turn = (/** @type {any} */ spot) => Math.atan2(spot.y - spot.parent.y, spot.x - spot.parent.x);
    return spots.filter((spot) => spot.parent === parent).sort((a, b) => turn(a) - turn(b));
  }

  /** @param {Spot | undefined} spot */
  function focus(spot) {
    at = spot;
    if (!at) return;
    const beside = behind(at.parent);
    say([at.key, at.written ? at.summary : "not written yet", at.parent && `${beside.indexOf(at) + 1} of ${beside.length} linked with ${at.parent.key}`].filter(Boolean).join(", "));
    if (at.h > 0 && at.v > 0 && at.h < width && at.v < height) return;
    left += width / 2 - at.h;
    top += height / 2 - at.v;
  }

  /** @param {GraphNode[]} nodes each can be reached from the first @param {GraphLink[]} links @param {(key: string) => string} address */
  function show(nodes, links, address) {
    hrefOf = address;
    const before = new Map(spots.map((spot) => [spot.key, spot]));
    const isOther = spots[0]?.key !== nodes[0].key;
    const known = new Map(nodes.map((node) => [node.key, /** @type {Spot} */ ({ ...node, x: 0, y: 0, dx: 0, dy: 0, linked: new Set() })]));
    spots = [...known.values()];
    lines = [];
    for (const { from, to } of links) {
      const [a, b] = [known.get(from), known.get(to)];
      if (!a || !b || a === b) continue;
      lines.push([a, b]);
      a.linked.add(b);
      b.linked.add(a);
    }
    // Around the node before it. What was there keeps its place.
    const reached = [spots[0]];
    for (const [index, spot] of reached.entries()) {
      const { x, y } = before.get(spot.key) ?? spot.parent ?? spot;
      const step = before.has(spot.key) || !index ? 0 : LENGTH;
      spot.x = x + step * Math.cos(index * 2.4);
      spot.y = y + step * Math.sin(index * 2.4);
      spot.size = index ? 4 + Math.min(3, spot.linked.size / 4) : 8;
      for (const other of spot.linked) if (!reached.includes(other)) { other.parent = spot; reached.push(other); }
    }
    at = isOther ? undefined : known.get(at?.key ?? "");
    isFitted ||= isOther;
    under = undefined;
    const now = JSON.stringify(links);
    if (now !== shape) heat = shape ? 0.5 : 1;
    shape = now;
    redraw();
  }

  const sizes = new ResizeObserver(redraw);
  sizes.observe(canvas);
  scheme.onchange = redraw;
  const hands = {
    /** @param {PointerEvent} event */
    pointerdown({ offsetX: x, offsetY: y, pointerId, button }) {
      if (button) return;
      held = { x, y, isMoved: false };
      canvas.setPointerCapture(pointerId);
    },
    /** @param {PointerEvent} event */
    pointermove({ offsetX: x, offsetY: y }) {
      const far = (/** @type {Spot} */ spot) => Math.hypot(spot.h - x, spot.v - y);
      if (!held) {
        under = spots.filter((spot) => far(spot) < REACH).sort((a, b) => far(a) - far(b))[0];
        canvas.style.cursor = under ? "pointer" : "";
      } else if (held.isMoved || Math.hypot(x - held.x, y - held.y) > SLIP) {
        left += x - held.x;
        top += y - held.y;
        isFitted = false;
        held = { x, y, isMoved: true };
      }
    },
    /** @param {PointerEvent} event */
    pointerup(event) {
      const isClick = held?.isMoved === false;
      held = undefined;
      // A finger has not hovered before.
      hands.pointermove(event);
      if (under && isClick) go(hrefOf(under.key));
    },
    // Where a finger scrolls the page as well.
    pointerleave() { under = held = undefined; },
    /** @param {WheelEvent} event */
    wheel(event) {
      event.preventDefault();
      scale(Math.exp(-event.deltaY / 600), event.offsetX, event.offsetY);
    },
    /** @param {KeyboardEvent} event */
    keydown(event) {
      const here = at ?? spots[0];
      const beside = behind(here.parent);
      const place = beside.indexOf(here);
      if (event.key === "Enter") go(hrefOf(here.key));
      const next = { ArrowRight: behind(here)[0], ArrowLeft: here.parent, ArrowDown: beside[place + 1], ArrowUp: beside[place - 1], Home: spots[0] };
      if (!(event.key in next)) return;
      event.preventDefault();
      focus(next[/** @type {keyof typeof next} */ (event.key)] ?? here);
    },
    // Who clicks means another place.
    focus() { if (!held) focus(at ?? spots[0]); },
    blur() {},
  };
  for (const [kind, act] of Object.entries(hands)) canvas.addEventListener(kind, (event) => { act(/** @type {any} */ (event)); redraw(); }, { passive: false });
  return {
    scale,
    fit() { isFitted = true; redraw(); },
    show,
    end() {
      scheme.onchange = null;
      sizes.disconnect();
      cancelAnimationFrame(frame);
    },
  };
}

/**
 * @param {{nodes: GraphNode[], links: GraphLink[], hrefOf: (key: string) => string, label: string}} props `nodes`: the one in the middle first, one at
 *   least; both stay the same arrays while nothing has changed
 */
export function Graph({ nodes, links, hrefOf, label }) {
  const canvas = useRef(/** @type {any} */ (null));
  const picture = useRef(/** @type {any} */ (null));
  const [said, say] = useState("");
  const id = useId();
  useEffect(() => {
    picture.current = paint(canvas.current, say);
    return picture.current.end;
  }, []);
  useEffect(() => picture.current.show(nodes, links, hrefOf), [nodes, links]);
  return html`<div class="form canvas"><canvas ref=${canvas} tabindex="0" role="img" aria-label=${label} aria-describedby=${id} />
    <div class="acts">${ZOOMS.map(([words, sign, factor]) => html`<${Button} label=${words} onClick=${() => picture.current.scale(factor)}>${sign}<//>`)}<${Button} onClick=${() => picture.current.fit()}>Fit<//></div>
    <small id=${id}>A click opens a node. Keys: → follows a link, ← goes back, ↑ and ↓ go on, Enter opens.</small>
    <p class="unseen" aria-live="polite">${said}</p></div>`;
}
