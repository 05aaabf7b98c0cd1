// A process that runs one program in the sandbox, for the test that kills it meanwhile. Arguments: the mode, the
// folder, the program's path, PATH, the program's arguments.
import { createSandbox, type SandboxMode } from '../../server/render/sandbox/runs.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [mode = 'bubblewrap', folder = '', command = '', path = '', ...args] = process.argv.slice(2)
const renderers = new Map([['sleep', { command, args: [], readOnly: ['/usr/bin/sleep'], memory: undefined, timeout: undefined }]])
const programs = { kustomize: command, renderers, searchPath: path.split(':') }
const options = { mode: mode as SandboxMode, programs, ownBinary: process.execPath, bunVersion: Bun.version, folder, slots: 1 }
const sandbox = createSandbox(options, systemClock)
await sandbox.run({ program: mode === 'limits' ? 'kustomize' : { exec: 'sleep' }, args, files: new Map() })
