import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { appenderTo } from '../../../base/core/files/appender.ts'
import type { Listen } from '../events.ts'
import { type CurvePoint, curveReader } from './curves.ts'

/**
 * Writes the curves of a run as an event file of TensorBoard: those of training by step, others by
 * group. A disk that refuses them does not stop the run.
 */
export function openTensorBoard(folder: string): { readonly listen: Listen } & AsyncDisposable {
  mkdirSync(folder, { recursive: true })
  const began = Date.now() / 1000
  const name = `events.out.tfevents.${Math.floor(began)}.${hostname()}.${process.pid}`
  const file = appenderTo(join(folder, name), { isLines: false })
  const write = (bytes: Buffer): void => void file.append(bytes).catch(() => {})
  write(record(eventOf(began, 0, { version: 'brain.Event:2' })))
  const read = curveReader()
  return {
    listen(event) {
      const found = read(event)
      if (!found) return
      write(record(eventOf(Date.now() / 1000, found.step, { values: found.values })))
    },
    async [Symbol.asyncDispose]() {
      await file.settled()
    },
  }
}

/** TensorFlow's Event message: when, which step, and a version or values. */
function eventOf(
  seconds: number,
  step: number,
  { version, values = {} }: { readonly version?: string; readonly values?: CurvePoint['values'] },
): Buffer {
  const time = Buffer.alloc(9)
  time[0] = 0x09
  time.writeDoubleLE(seconds, 1)
  const summary = Buffer.concat(
    Object.entries(values).map(([tag, value]) => {
      const number = Buffer.alloc(5)
      number[0] = 0x15
      number.writeFloatLE(value, 1)
      return field(1, Buffer.concat([field(1, Buffer.from(tag)), number]))
    }),
  )
  return Buffer.concat([
    time,
    Buffer.from([0x10, ...varint(step)]),
    ...(version === undefined ? [] : [field(3, Buffer.from(version))]),
    ...(summary.length > 0 ? [field(5, summary)] : []),
  ])
}

/** A field of bytes in Protocol Buffers. */
function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(bytes.length)]), bytes])
}

function varint(value: number): readonly number[] {
  const bytes: number[] = []
  let left = value
  while (left > 127) {
    bytes.push((left % 128) | 128)
    left = Math.floor(left / 128)
  }
  return [...bytes, left]
}

/** A record of TensorFlow's files: length and data, each behind its checksum. */
function record(data: Buffer): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(data.length))
  return Buffer.concat([length, checksum(length), data, checksum(data)])
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1
  return value
})

/** CRC-32C, turned and shifted as these files want it. */
function checksum(bytes: Buffer): Buffer {
  let crc = 0xffffffff
  for (const byte of bytes) crc = table[(crc ^ byte) & 255]! ^ (crc >>> 8)
  crc = (crc ^ 0xffffffff) >>> 0
  const masked = (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
  const out = Buffer.alloc(4)
  out.writeUInt32LE(masked)
  return out
}
