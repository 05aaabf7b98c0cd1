// A library imported with `with { type: 'file' }` is its path.
declare module '*.so' {
  const path: string
  // biome-ignore lint/style/noDefaultExport: the form of an import attribute's module is Bun's
  export default path
}
