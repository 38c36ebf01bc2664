// The official Tinker SDK drives the server of our tests: node --import tsx … PYTHON
import { spawn } from 'node:child_process'
import { openTinkerServer } from '../../servers/tinker.ts'

const shape = { vocabulary: 64, width: 32, layers: 1, heads: 2, hidden: 48, context: 128 }
await using server = await openTinkerServer(shape)
const python = process.argv[2] ?? 'python3'
const child = spawn(python, ['test/python/trainers/sdk_drives.py', server.url], {
  stdio: ['ignore', 'inherit', 'inherit'],
})
process.exitCode = await new Promise<number>(resolve => {
  child.on('error', error => {
    console.log(`FAIL ${error.message}`)
    resolve(1)
  })
  child.on('exit', code => resolve(code ?? 1))
})
