// Pages name no other host: addresses from which a package would load its own parts by default are removed.

import type { Plugin } from "vite";

const ELSEWHERE = /https:\/\/[\w.]+\.jsdelivr\.net\/npm\//g;

export function ownAddresses(): Plugin {
  return {
    name: "own-addresses",
    transform(code, id) {
      return id.includes("/zxing-wasm/") ? { code: code.replaceAll(ELSEWHERE, ""), map: null } : null;
    },
  };
}
