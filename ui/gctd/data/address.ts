// Faults in the address of a repository, before it is sent. The service has the last word (gctd/domain/remote/urls.py).

/** Why an address cannot be right; null if it may be. */
export function problemOf(text: string): string | null {
  const address = text.trim();
  if (!address) return null;
  if (/\s/.test(address)) return "An address has no spaces.";
  if (/[?#]/.test(address)) return "Leave out what follows ? or #.";
  if (address.startsWith("-")) return "An address does not begin with a dash.";
  if (/^http:/i.test(address)) return "http is not encrypted: use https.";
  if (/^(file:|\/|ssh:)/i.test(address) || /^[\w.-]+@[\w.-]+:/.test(address)) return null; // where the operator allows them
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1];
  if (scheme && scheme.toLowerCase() !== "https") return `The scheme ${scheme} is not taken: use https.`;
  const rest = address.replace(/^https:\/\//i, "");
  if (rest.includes("@")) return "Leave out user and password: credentials belong into the worker's configuration.";
  const [host = "", ...path] = rest.split("/");
  if (!/^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$/i.test(host)) return "The host's name is missing: https://host/owner/name.";
  if (path.filter(Boolean).length === 0) return "The path of the repository is missing: https://host/owner/name.";
  return null;
}

/** How the address will be known. */
export function canonical(text: string): string {
  const address = text.trim().replace(/\/+$/, "");
  if (/^[a-z]+:/i.test(address) || address.startsWith("/") || /^[\w.-]+@/.test(address)) return address.replace(/\.git$/, "");
  return `https://${address.replace(/\.git$/, "")}`;
}
