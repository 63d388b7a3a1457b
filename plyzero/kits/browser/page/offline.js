// Visits without a network: a service worker keeps the files of the page. Browsers have one over HTTPS and at localhost alone.

export function keepFiles() {
  navigator.serviceWorker?.register(new URL("service_worker.js", import.meta.url)).catch(() => undefined); // the page works without it
}
