// Opens an address in the browser of the person.

const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Its failure is no failure of the command: the address was printed, too. */
export function openBrowser(url: string): void {
  const [program = '', ...args] = OPENERS[process.platform] ?? ['xdg-open']
  if (Bun.which(program) === null) return
  try {
    Bun.spawn([program, ...args, url], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' }).unref()
  } catch {
    // The person opens the address.
  }
}
