// The import of page.js is its text, which browsers run.
declare const text: string
// biome-ignore lint/style/noDefaultExport: an import of a text file has nothing else
export default text
