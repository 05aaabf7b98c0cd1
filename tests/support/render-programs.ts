// The programs that scripts/setup --render makes, for tests that hold us against them.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './source-files.ts'

export const renderProgram = (name: 'helm' | 'helm3' | 'kustomize' | 'registry'): string => {
  const path = join(ROOT, 'build', 'render', name)
  if (!existsSync(path)) throw new Error(`${path} is not there: run scripts/setup --render`)
  return path
}
