// The kubectl of the person, with the cluster that --kubeconfig and --context choose: `skerry install` has no other way
// to a cluster.
import { AppError } from '../../../shared/runtime/error.ts'
import type { CliIo } from '../io.ts'

export interface KubectlPlace {
  kubectl: string
  kubeconfig: string | undefined
  /** Undefined for the current context. */
  context: string | undefined
}

export interface Kubectl {
  /** Standard output. Throws with the standard error. */
  run(args: readonly string[], options?: { doing: string; stdin?: string }): Promise<string>
  /** The start of a command line for the person. */
  words: string
}

export function createKubectl({ run }: CliIo, { kubectl, kubeconfig, context }: KubectlPlace): Kubectl {
  if (run === undefined) throw new AppError('bad_options', { detail: 'this program cannot start kubectl' })
  const place = [
    ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === undefined ? [] : ['--context', context]),
  ]
  return {
    words: [kubectl, ...place].join(' '),
    async run(args, { doing, stdin = '' } = { doing: 'ask the cluster' }) {
      const result = await run([kubectl, ...place, ...args], stdin)
      if (result === null)
        throw new AppError('bad_options', {
          ...{ doing, detail: `the program ${kubectl} does not exist` },
          remedy: 'Install kubectl, or name it with --kubectl FILE.',
        })
      if (result.code === 0) return result.out
      const said = result.err.trim() || `exit code ${result.code}`
      throw new AppError('kube_refused', { doing, detail: `kubectl ${args[0] ?? ''}: ${said}`, remedy: 'Correct it and run this again.' })
    },
  }
}
