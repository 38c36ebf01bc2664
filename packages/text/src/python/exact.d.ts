/** CPython's floor division of floats, by way of the remainder. */
export declare function floorDivideFloats(left: number, right: number): number;
/** A finite float that is not negative, as a whole number times a power of two. */
export declare function decompose(value: number): {
    mantissa: bigint;
    exponent: number;
};
/** Correctly rounded division of integers of any size. */
export declare function divideInts(left: bigint, right: bigint): number;
/** The double nearest to `mantissa * 2^exponent`, ties to even. */
export declare function scale(mantissa: bigint, exponent: number): number;
