import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { builtFile } from '../../base/core/process/package-folder.ts'
import { webAssembly } from './engine/webassembly.ts'
import { loadKernel } from './kernel-file.ts'

it('takes fused multiplication where none is asked for, and leaves the flags of V8 as they were', async () => {
  const bytes = readFileSync(builtFile('learn/model/wasm/relaxed-fma.wasm'))
  const before = webAssembly.validate(bytes)
  expect((await loadKernel(undefined)).kernel).toBe('relaxed-fma')
  expect((await loadKernel('plain')).kernel).toBe('plain')
  expect(webAssembly.validate(bytes)).toBe(before)
})
