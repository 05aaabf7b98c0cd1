// Programs that run in the sandbox, each as one text, made when this program is built (a macro), so that the binary has them without their sources.

/** `entry`: a path from the folder of renderers. */
export function bundled(entry: string): string {
  const command = [process.execPath, 'build', `${import.meta.dir}/../${entry}`, '--target=bun', '--format=esm', '--minify-whitespace']
  // Options of the server's own process, such as a probe that is loaded before it, are none of a build.
  const built = Bun.spawnSync(command, { env: { ...process.env, BUN_OPTIONS: undefined } })
  if (!built.success) throw new Error(`cannot bundle ${entry}: ${built.stderr.toString()}`)
  return built.stdout.toString()
}
