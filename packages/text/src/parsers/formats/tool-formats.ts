import type { ToolReading } from '../format.ts'
import { jsonFormats } from './json-formats.ts'
import { tagFormats } from './tag-formats.ts'

/**
 * Every format of tool calls. Names are those under which the servers that parse them
 * (SGLang, vLLM, twinkle) know them; each says which models write so.
 */
const formats = { ...jsonFormats, ...tagFormats }

/** The name of a format of tool calls. */
export type ToolFormat = keyof typeof formats

/** How to read each format. */
export const toolReadings: Readonly<Record<ToolFormat, ToolReading>> = formats
