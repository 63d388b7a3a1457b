// What pages are made of: preact's elements, written as templates of htm. Only these are elements; other objects show nothing.

import htm from "./vendor/htm.js";
import { h, render } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";

export const html = htm.bind(h);
export { render, useEffect, useLayoutEffect, useMemo, useRef, useState };
