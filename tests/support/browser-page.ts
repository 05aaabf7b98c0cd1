// The part of a browser that the modules of the dashboard look at when they are loaded. Tests of their state run
// without one.
const storage = () => {
  const held = new Map<string, string>()
  return {
    getItem: (key: string) => held.get(key) ?? null,
    setItem: (key: string, value: string) => void held.set(key, value),
    removeItem: (key: string) => void held.delete(key),
  }
}
const listener = { addEventListener: () => {} }

/** Before the modules are imported. */
export function standInForBrowser(): void {
  const document = {
    baseURI: 'http://localhost/skerry/dashboard/',
    visibilityState: 'visible',
    documentElement: { dataset: {} },
    ...listener,
  }
  const location = { hash: '', pathname: '/skerry/dashboard/', search: '', assign: () => {} }
  Object.assign(globalThis, { document, location, window: listener, sessionStorage: storage(), localStorage: storage() })
}

/** Lets everything that waits for no timer go on. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}
