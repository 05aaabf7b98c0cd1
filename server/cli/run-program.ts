// Starts another program of the person's machine, such as kubectl, and waits for its end.

export interface ProgramResult {
  code: number
  out: string
  err: string
}

/** Null if there is no such program. */
export async function runProgramOf(command: readonly string[], stdin: string): Promise<ProgramResult | null> {
  const [program = '', ...args] = command
  const path = Bun.which(program)
  if (path === null) return null
  const child = Bun.spawn([path, ...args], { stdin: new TextEncoder().encode(stdin), stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return { code, out, err }
}
