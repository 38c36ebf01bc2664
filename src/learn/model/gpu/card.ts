import { missingPackage } from '../../../base/core/names/missing-package.ts'
import { inWords } from '../pretrained/fit.ts'
import { type KernelName, kernels, shaderOf } from './shaders/index.ts'

/** A graphics card was lost: what lay in its memory is gone, and the work under way with it. */
export class LostError extends Error {
  override name = 'LostError'
}

/** A card that was found. */
export interface FoundCard {
  readonly adapter: GPUAdapter
  /** As people read it. */
  readonly description: string
  /** The most bytes of one array: larger weights are cut. */
  readonly largest: number
  /** Whether a processor plays it: it computes the same, and gains nothing. */
  readonly isPlayed: boolean
}

/** The library's own object: as long as somebody has it, its adapters live. */
let gpu: GPU | undefined

/** The card of this machine, if there is one that the package `webgpu` can use. */
export async function findCard(): Promise<FoundCard | undefined> {
  let found: typeof import('webgpu')
  try {
    found = await import('webgpu')
  } catch (cause) {
    throw missingPackage('--device gpu', 'webgpu', cause)
  }
  gpu ??= found.create([])
  const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' })
  if (!adapter) return undefined
  const { vendor, architecture, device, description, isFallbackAdapter: isPlayed } = adapter.info
  const name = description || device || 'a graphics card'
  const kind = [vendor, architecture].filter(Boolean).join(' ')
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits
  const largest = Math.min(maxBufferSize, maxStorageBufferBindingSize)
  const played = isPlayed ? ', played by the processor' : ''
  return {
    adapter,
    isPlayed,
    largest,
    description: `${name} (${kind}), arrays up to ${inWords(largest)}${played}`,
  }
}

/** One thing that the card is to do. */
type Order =
  | {
      readonly kind: 'run'
      readonly pipeline: GPUComputePipeline
      readonly group: GPUBindGroup
      readonly groups: readonly [number, number]
    }
  | {
      readonly kind: 'copy'
      readonly from: GPUBuffer
      readonly to: GPUBuffer
      readonly places: readonly [from: number, to: number, bytes: number]
    }

/** Bytes between the numbers of one run and the next, and runs that are sent together. */
const stride = 256
const together = 2048

const usage = { mapRead: 1, copyFrom: 4, copyTo: 8, uniform: 64, storage: 128 } as const

/** A graphics card with its memory: orders are collected, and sent when something is read or many have come. */
export class Card {
  readonly #device: GPUDevice
  readonly #pipelines = new Map<KernelName, GPUComputePipeline>()
  readonly #groups = new Map<string, GPUBindGroup>()
  readonly #names = new WeakMap<GPUBuffer, number>()
  readonly #words = new Uint32Array((together * stride) / 4)
  readonly #floats = new Float32Array(this.#words.buffer)
  readonly #numbers: GPUBuffer
  #orders: Order[] = []
  #runs = 0
  #count = 0
  #problem: string | undefined
  #lost: string | undefined

  private constructor(device: GPUDevice) {
    this.#device = device
    const size = together * stride
    this.#numbers = device.createBuffer({
      size,
      usage: usage.uniform | usage.copyFrom | usage.copyTo,
    })
    void device.lost.then(({ message }) => {
      this.#lost = message || 'no reason was given'
    })
    device.onuncapturederror = ({ error }) => {
      this.#problem ??= error.message
    }
  }

  static async open({ adapter }: FoundCard): Promise<Card> {
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits
    const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize }
    return new Card(await adapter.requestDevice({ requiredLimits }))
  }

  /** The most bytes of one array. */
  get largest(): number {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.#device.limits
    return Math.min(maxBufferSize, maxStorageBufferBindingSize)
  }

  /** Takes memory for an array, which is zero at first; `what` names it if there is none. */
  take(bytes: number, what: string): GPUBuffer {
    const size = Math.max(16, Math.ceil(bytes / 16) * 16)
    if (size > this.largest) {
      throw new RangeError(
        `The graphics card holds arrays of up to ${inWords(this.largest)}: ${what} would take ${inWords(size)}. ` +
          'Take fewer tokens, a smaller rank or model, or --device cpu.',
      )
    }
    const flags = usage.storage | usage.copyFrom | usage.copyTo
    const buffer = this.#device.createBuffer({ size, usage: flags })
    this.#names.set(buffer, this.#count++)
    return buffer
  }

  /** Gives memory back. */
  free(buffers: readonly GPUBuffer[]): void {
    this.#flush()
    this.#groups.clear()
    for (const buffer of buffers) buffer.destroy()
  }

  write(buffer: GPUBuffer, data: Float32Array | Uint32Array | Uint16Array, bytes = 0): void {
    this.#flush()
    this.#device.queue.writeBuffer(buffer, bytes, data.buffer, data.byteOffset, data.byteLength)
  }

  copy(from: GPUBuffer, to: GPUBuffer, places: readonly [number, number, number]): void {
    this.#orders.push({ kind: 'copy', from, to, places })
  }

  /** Runs a kernel over arrays, in so many workgroups. */
  run(
    name: KernelName,
    arrays: readonly GPUBuffer[],
    numbers: Readonly<Record<string, number>>,
    groups: readonly [number, number],
  ): void {
    if (groups[0] === 0 || groups[1] === 0) return
    if (this.#runs === together) this.#flush()
    kernels[name].numbers.forEach((field, index) => {
      const at = (this.#runs * stride) / 4 + index
      const value = numbers[field.slice(2)]
      if (value === undefined) throw new Error(`${name} is run without ${field}.`)
      if (field.startsWith('u')) this.#words[at] = value
      else this.#floats[at] = value
    })
    this.#runs++
    const pipeline = this.#pipelineOf(name)
    this.#orders.push({
      kind: 'run',
      pipeline,
      group: this.#groupOf(name, pipeline, arrays),
      groups,
    })
  }

  /** Runs a kernel once for each of `count` numbers. */
  each(
    name: KernelName,
    arrays: readonly GPUBuffer[],
    numbers: Readonly<Record<string, number>> & { readonly count: number },
  ): void {
    this.run(name, arrays, numbers, [Math.min(Math.ceil(numbers.count / 256), 65_535), 1])
  }

  /** What an array begins with, once everything asked for is done. */
  async read(buffer: GPUBuffer, bytes: number): Promise<ArrayBuffer> {
    const size = Math.max(4, Math.ceil(bytes / 4) * 4)
    const target = this.#device.createBuffer({ size, usage: usage.mapRead | usage.copyTo })
    this.copy(buffer, target, [0, 0, size])
    this.#flush()
    try {
      await target.mapAsync(1)
    } catch (cause) {
      // The news of a loss may come a moment later.
      await new Promise(resolve => setImmediate(resolve))
      this.check()
      throw cause
    }
    this.check()
    const found = target.getMappedRange().slice(0)
    target.destroy()
    return found
  }

  /** Waits until everything asked for is done. */
  async settle(): Promise<void> {
    await this.read(this.#numbers, 0)
  }

  /** Throws if the card was lost, or refused something. */
  check(): void {
    if (this.#lost !== undefined) {
      throw new LostError(`The graphics card was lost (${this.#lost}).`)
    }
    if (this.#problem === undefined) return
    throw new Error(`The graphics card refused its work: ${this.#problem.split('\n')[0]}`)
  }

  /** Lets the card go, and what lies in its memory. */
  close(): void {
    this.#device.destroy()
  }

  #flush(): void {
    if (this.#orders.length === 0) return
    const { queue } = this.#device
    queue.writeBuffer(this.#numbers, 0, this.#words.buffer, 0, this.#runs * stride)
    const encoder = this.#device.createCommandEncoder()
    let pass: GPUComputePassEncoder | undefined
    let place = 0
    for (const order of this.#orders) {
      if (order.kind === 'copy') {
        pass?.end()
        pass = undefined
        const [from, to, bytes] = order.places
        encoder.copyBufferToBuffer(order.from, from, order.to, to, bytes)
        continue
      }
      pass ??= encoder.beginComputePass()
      pass.setPipeline(order.pipeline)
      pass.setBindGroup(0, order.group, [place])
      pass.dispatchWorkgroups(...order.groups)
      place += stride
    }
    pass?.end()
    queue.submit([encoder.finish()])
    this.#orders = []
    this.#runs = 0
  }

  #pipelineOf(name: KernelName): GPUComputePipeline {
    const known = this.#pipelines.get(name)
    if (known) return known
    const device = this.#device
    const kernel = kernels[name]
    const arrays = kernel.arrays.map((each, index) => {
      const type = each.includes('=') ? ('storage' as const) : ('read-only-storage' as const)
      return { binding: index + 1, visibility: 4, buffer: { type } }
    })
    const numbers = { type: 'uniform', hasDynamicOffset: true } as const
    const entries = [{ binding: 0, visibility: 4, buffer: numbers }, ...arrays]
    const layout = device.createPipelineLayout({
      bindGroupLayouts: [device.createBindGroupLayout({ entries })],
    })
    const module = device.createShaderModule({ label: name, code: shaderOf(kernel) })
    const pipeline = device.createComputePipeline({ layout, compute: { module } })
    this.#pipelines.set(name, pipeline)
    return pipeline
  }

  #groupOf(
    name: KernelName,
    pipeline: GPUComputePipeline,
    arrays: readonly GPUBuffer[],
  ): GPUBindGroup {
    const key = `${name} ${arrays.map(buffer => this.#names.get(buffer)).join(' ')}`
    const known = this.#groups.get(key)
    if (known) return known
    const numbers = { buffer: this.#numbers, offset: 0, size: 64 }
    const group = this.#device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [numbers, ...arrays.map(buffer => ({ buffer }))].map((resource, binding) => {
        return { binding, resource }
      }),
    })
    this.#groups.set(key, group)
    return group
  }
}
