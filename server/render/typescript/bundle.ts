// Programs that run in the sandbox, each as one text, made when this program is built (a macro), so that the binary has
// them without their sources.

/** `entry`: a path from the folder of renderers. */
export function bundled(entry: string): string {
  const build = [process.execPath, 'build', `${import.meta.dir}/../${entry}`, '--target=bun', '--format=esm', '--minify-whitespace']
  // BUN_OPTIONS of this process, such as a preloaded probe, are refused by a build.
  const built = Bun.spawnSync(['env', '-u', 'BUN_OPTIONS', ...build])
  if (!built.success) throw new Error(`cannot bundle ${entry}: ${built.stderr.toString()}`)
  return built.stdout.toString()
}
