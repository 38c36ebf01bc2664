import { readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { builtFile } from '../../base/core/process/package-folder.ts'
import { type CompiledKernels, webAssembly } from './engine/webassembly.ts'
import type { Kernel } from './protocol.ts'

/** The compiled kernels lie here. */
const folder = builtFile('learn/model/wasm/')

/** The file that a model's threads run: one bundle, since workers cannot load TypeScript. */
export const workerFile = builtFile('learn/model/engine/worker.js')

/** Loads the kernels: those asked for, or the fastest that this runtime can run. */
export async function loadKernel(
  wanted: Kernel | undefined,
): Promise<{ kernel: Kernel; module: CompiledKernels }> {
  const candidates: readonly Kernel[] = wanted ? [wanted] : ['relaxed-fma', 'plain']
  for (const kernel of candidates) {
    const bytes = await readFile(new URL(`${kernel}.wasm`, folder)).catch(missing)
    const module = compileWhereKnown(bytes)
    if (module) return { kernel, module }
  }
  throw new Error(
    `This Node (${process.version}) cannot run the kernel ${candidates.join(' or ')}: ` +
      'relaxed-fma needs relaxed SIMD instructions, plain runs everywhere.',
  )
}

/** Node 20's V8 knows the relaxed instructions as later ones do, but asks for a flag. */
const wantsFlag = process.versions.v8.startsWith('11.3.')
const flag = 'experimental-wasm-relaxed-simd'

/** The flag belongs to the process: another thread that opens a model may take it back too early. */
const attempts = 100

/** Compiles the kernels if this runtime knows their instructions. */
function compileWhereKnown(bytes: Uint8Array): CompiledKernels | undefined {
  if (webAssembly.validate(bytes)) return new webAssembly.Module(bytes)
  for (let attempt = 0; wantsFlag && attempt < attempts; attempt++) {
    const module = compileWithFlag(bytes)
    if (module) return module
  }
  return undefined
}

/** The flag is set only while the kernels compile: V8 throws away its cached code when flags differ. */
function compileWithFlag(bytes: Uint8Array): CompiledKernels | undefined {
  setFlagsFromString(`--${flag}`)
  try {
    return new webAssembly.Module(bytes)
  } catch {
    return undefined
  } finally {
    setFlagsFromString(`--no-${flag}`)
  }
}

function missing(cause: Error): never {
  throw new Error('The kernels are not built: run `npm run build` first.', { cause })
}
