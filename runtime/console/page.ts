/** The document of every page: it holds no data, and loads one script and one style from its own origin. */
export const pageHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Watchfire</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/main.css">
<script type="module" src="/console/main.js"></script>
</head>
<body>
<div id="app"><noscript>The console needs JavaScript. These commands show the same: watchfire status, runs, explain, dead-letters.</noscript></div>
</body>
</html>
`;

export const iconSvg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#d9480f" d="M8 1c1 3 5 4.500 5 9a5 5 0 0 1-10 0c0-2 1-3 2-4 0 1.500.5 2.500 1.500 2.500C8 8.500 6.500 4 8 1z"/></svg>`;

/** Sent with every answer of the console. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // With `no-referrer`, Chromium sends `Origin: null` with the console's own writes.
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};
