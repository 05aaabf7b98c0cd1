// Entry point of the child that tries cr-sqlite files, for a run from source. A compiled program is its own child.
import { runTrial } from './crdt-trial.ts'

const [, libraryDir = '', ...paths] = process.argv.slice(2)
runTrial(libraryDir, paths, (line) => void process.stdout.write(line))
