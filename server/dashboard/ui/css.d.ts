// Styles are bundled by Bun; importing one gives nothing.
declare module '*.css'
