// The page without a network: our service worker keeps its files. Only secure origins have service workers.

import { Cell } from "../../kit/data/cell";

/** A newer version of the page that is ready, or null. */
export const newVersion = new Cell<ServiceWorker | null>(null);

export function startOffline(): void {
  if (!import.meta.env.PROD || !navigator.serviceWorker) return;
  navigator.serviceWorker.register("./sw.js").then(watch, () => {}); // without it the page needs the network, and works all the same
}

function watch(registration: ServiceWorkerRegistration): void {
  const installed = ({ waiting }: ServiceWorkerRegistration) => newVersion.set(waiting);
  installed(registration);
  registration.addEventListener("updatefound", () => {
    registration.installing?.addEventListener("statechange", () => installed(registration));
  });
}

/** Take the newer version: the page is loaded again with it. */
export function takeNewVersion(worker: ServiceWorker): void {
  navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
  worker.postMessage("take over");
}
