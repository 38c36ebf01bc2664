import { readFile } from 'node:fs/promises'
import { type CompiledKernels, webAssembly } from './engine/webassembly.ts'
import type { Kernel } from './protocol.ts'

/** The compiled worker and kernels lie here, beside the sources and beside the built files alike. */
const folder = new URL('./wasm/', import.meta.url)

/** The file that a model's threads run: one bundle, since workers cannot load TypeScript. */
export const workerFile = new URL('worker.js', folder)

/** Loads the kernels: those asked for, or the fastest that this runtime can run. */
export async function loadKernel(
  wanted: Kernel | undefined,
): Promise<{ kernel: Kernel; module: CompiledKernels }> {
  const candidates: readonly Kernel[] = wanted ? [wanted] : ['relaxed-fma', 'plain']
  for (const kernel of candidates) {
    const bytes = await readFile(new URL(`${kernel}.wasm`, folder)).catch(missing)
    if (webAssembly.validate(bytes)) return { kernel, module: await webAssembly.compile(bytes) }
  }
  throw new Error(
    `This Node (${process.version}) cannot run the kernel ${candidates.join(' or ')}: ` +
      'relaxed-fma needs Node 22 or later, plain runs everywhere.',
  )
}

function missing(cause: Error): never {
  throw new Error('The kernels are not built: run `npm run build` first.', { cause })
}
