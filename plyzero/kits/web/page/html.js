// What pages are made of: preact's elements, written as templates of htm. Only these are elements; other objects show nothing.

import htm from "/static/vendor/htm.js";
import { h, render } from "/static/vendor/preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "/static/vendor/preact-hooks.js";

export const html = htm.bind(h);
export { render, useEffect, useLayoutEffect, useMemo, useRef, useState };
