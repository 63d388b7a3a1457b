// Visits without a network: a service worker keeps the files of the page. Browsers have one over HTTPS and at localhost alone.

export async function keepFiles() {
  await navigator.serviceWorker?.register(new URL("service_worker.js", import.meta.url));
}
