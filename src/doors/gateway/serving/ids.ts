import { refuse, short } from '../../../engine/capture/dialects/fields.ts'

/** Token ids; they must be in the vocabulary. */
export function toIds(value: unknown, name: string, vocabulary: number): Int32Array {
  if (!Array.isArray(value)) return refuse(name, 'must be a list of token ids')
  const wrong = value.findIndex(id => !Number.isInteger(id) || id < 0 || id >= vocabulary)
  if (wrong < 0) return Int32Array.from(value as number[])
  return refuse(
    `${name}[${wrong}]`,
    `is ${short(value[wrong])}; ids are whole numbers from 0 to ${vocabulary - 1}`,
  )
}
