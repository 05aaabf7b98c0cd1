// How long work takes that is nothing but work: on a busy machine as on a quiet one.

/** Milliseconds of processor time of this process. */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
