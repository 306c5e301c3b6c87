import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "./api-error.ts";

/** OpenSSL's verification errors (Node's `tls`: "X509 certificate error codes"): the server's certificate is not trusted. */
const untrusted = /SELF_SIGNED|UNABLE_TO_(GET|VERIFY|DECRYPT)|ALTNAME|HOSTNAME_MISMATCH|INVALID_CA|^CERT_/;

/** TLS alerts by which the server refuses our certificate. */
const refused = /^ERR_SSL_.*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/;

/**
 * Converts a connection error to a WatchfireError, whose code separates failures that a person must fix (credentials, trust) from
 * transient ones. `server` appears in the message.
 */
export function contactFault(error: unknown, server: string): WatchfireError {
  if (error instanceof ApiError) {
    // The status was derived from an unreadable body; the server itself reported success.
    if (error.reason === "NotJSON") {
      return new WatchfireError("WF_KUBE_PROTOCOL", { what: `${server}: ${error.message}`, cause: error });
    }
    const away = error.isForeign ? "WF_KUBE_PROTOCOL" : "WF_KUBE_UNREACHABLE";
    const code = error.status === 401 ? "WF_KUBE_CREDENTIALS" : away;
    return new WatchfireError(code, { what: `${server} answered ${error.status}: ${error.message}`, cause: error });
  }
  const reason = tlsCode(error);
  if (refused.test(reason)) {
    return new WatchfireError("WF_KUBE_CREDENTIALS", {
      what: `${server} refuses the client certificate: ${reason}`,
      cause: error,
    });
  }
  if (untrusted.test(reason)) {
    return new WatchfireError("WF_KUBE_CERTIFICATE", { what: `the certificate of ${server}: ${reason}`, cause: error });
  }
  if (error instanceof WatchfireError) return error;
  const what = error instanceof Error ? error.message : String(error);
  return new WatchfireError("WF_KUBE_UNREACHABLE", { what, cause: error });
}

/** Returns the code of the innermost cause. */
function tlsCode(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error.cause instanceof Error) return tlsCode(error.cause);
  return String((error as NodeJS.ErrnoException).code ?? "");
}
