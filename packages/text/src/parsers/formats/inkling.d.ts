import { type StageReader, type Unit } from '../blocks.ts';
/** Framing around the text of an answer. */
export declare const inklingFraming: string[];
/** A call: `<|message_model|>NAME<|content_invoke_tool_json|>{"name": …, "args": …}<|end_message|>`. */
export declare const inklingUnit: Unit;
/** Splits messages of thoughts off; calls are passed on as they are, and end a thought. */
export declare const inklingSplitter: StageReader;
