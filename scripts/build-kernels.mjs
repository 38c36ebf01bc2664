// Compiles the embedded model's kernels to WASM and bundles the file that its threads run.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'
import { build } from 'esbuild'

const model = fileURLToPath(new URL('../src/model', import.meta.url))
const folder = `${model}/wasm`

/** Both kernels are the same source; the second has fused multiply-add where the runtime has it. */
const kernels = { plain: [], 'relaxed-fma': ['--enable', 'relaxed-simd'] }

const options = [
  ...['-O3', '--converge', '--noAssert', '--runtime', 'stub'],
  ...['--enable', 'simd', '--enable', 'threads'],
  ...['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
]

/** Files appear whole: a test that runs meanwhile must not load half of one. */
function write(name, content) {
  writeFileSync(`${folder}/${name}.part`, content)
  renameSync(`${folder}/${name}.part`, `${folder}/${name}`)
}

async function compile(name, flags) {
  const outputs = new Map()
  const { error, stdout, stderr } = await asc.main(
    ['index.ts', '--baseDir', `${model}/kernels`, '-o', 'kernel.wasm', ...options, ...flags],
    { writeFile: (file, content) => void outputs.set(file, content) },
  )
  if (error) {
    process.stderr.write(`${stdout}${stderr}`)
    throw error
  }
  const bytes = outputs.get('kernel.wasm')
  // Static data would be written again by every thread that starts, over memory others use.
  if (hasData(bytes)) throw new Error(`The kernel ${name} has static data; it may have none.`)
  write(`${name}.wasm`, bytes)
}

/** Whether a WASM binary has a data section (number 11). */
function hasData(bytes) {
  let at = 8
  while (at < bytes.length) {
    const section = bytes[at++]
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]
      size |= (byte & 127) << shift
      if (byte < 128) break
    }
    if (section === 11) return true
    at += size
  }
  return false
}

async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [`${model}/engine/worker.ts`],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  })
  write('worker.js', outputFiles[0].contents)
}

mkdirSync(folder, { recursive: true })
await bundle()
for (const [name, flags] of Object.entries(kernels)) await compile(name, flags)
