// Templates and hooks: the one place that names the vendored modules.
import { h, render } from "../vendor/preact.js";
import { useCallback, useEffect, useErrorBoundary, useId, useMemo, useRef, useState } from "../vendor/hooks.js";
import htm from "../vendor/htm.js";

/** An element: behind the name of its tag there may be classes, as in `p.faint`. @param {any} type @param {any} props @param {any[]} children */
const element = (type, props, ...children) => {
  const [tag, ...classes] = type.split?.(".") ?? [type];
  return h(tag, classes.length ? { ...props, class: classes.join(" ") } : props, ...children);
};

export const html = htm.bind(/** @type {typeof h} */ (element));
export { render, useCallback, useEffect, useErrorBoundary, useId, useMemo, useRef, useState };
