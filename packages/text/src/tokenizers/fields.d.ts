/** A JSON object whose fields are not checked yet. */
export type Fields = Readonly<Record<string, unknown>>;
/** A part of a tokenizer.json that is not known, or that one model here cannot read and another may. */
export declare class UnsupportedPartError extends Error {
    name: string;
}
/** Takes a JSON object, or throws with the place where something else is. */
export declare function readFields(value: unknown, where: string): Fields;
export declare function readList(value: unknown, where: string): readonly unknown[];
export declare function readText(value: unknown, where: string): string;
/** A token id; the ceiling keeps pairs of ids and ranks within exact arithmetic. */
export declare function readId(value: unknown, where: string): number;
/** A flag that may be absent or null, which means false. */
export declare function readFlag(value: unknown, where: string): boolean;
/** A part that may be absent or null. */
export declare function readOptional<T>(value: unknown, read: (value: unknown) => T): T | undefined;
