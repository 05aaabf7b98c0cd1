// The runner as one text, made when this program is built (a macro), so that the binary has it without its sources.

export function bundledRunner(): string {
  const built = Bun.spawnSync([
    process.execPath,
    'build',
    `${import.meta.dir}/runner.ts`,
    '--target=bun',
    '--format=esm',
    '--minify-whitespace',
  ])
  if (!built.success) throw new Error(`cannot bundle the runner: ${built.stderr.toString()}`)
  return built.stdout.toString()
}
