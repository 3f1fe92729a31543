// The error function and its complement. Near 0 erf(x) / x is a polynomial in x^2; from 1 on (1 + 2x) e^(x^2) erfc(x)
// is one in (x - k) / (x + k), which tames the tail (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x)
// exp(x^2) erfc x", Math. Comp. 36, 1981). The polynomials interpolate at Chebyshev nodes, computed in 120 digits.
#include <array>

#include "ir/expand/expand.h"

namespace agc::expand {
namespace {

// erf(x) / x - 1 in x^2 on [0, 1]; off by less than 2^-29 and 2^-68.
constexpr std::array<double, 8> kErf32 = {0.12837916706154343,    -0.3761263846802871,   0.11283782495236845,
                                          -0.026865430727670243,  0.005221031807858023,  -0.0008484080405535107,
                                          0.00011265959025606609, -9.667044571486996e-06};
constexpr std::array<double, 15> kErf64 = {0.1283791670955126,     -0.37612638903183754,    0.11283791670955126,
                                           -0.026866170645131218,  0.005223977625441674,    -0.0008548327023403001,
                                           0.00012055332978879483, -1.4925650236967501e-05, 1.6462110782018636e-06,
                                           -1.636576864883207e-07, 1.4806027146128752e-08,  -1.2277734486795524e-09,
                                           9.323723518153027e-11,  -6.1967364287877e-12,    2.8067128195611264e-13};

// (1 + 2x) e^(x^2) erfc(x) - 1 in (x - k) / (x + k) for x in [0.5, 10.5], k = 2, and [0.5, 28], k = 3.
constexpr std::array<double, 11> kErfc32 = {0.276978381076445,       -0.09276381648760261,  -0.16603032992432254,
                                            0.16405076285653244,     -0.054221511262925036, -0.008026412147474358,
                                            0.008734219801465033,    0.001224448894652003,  -0.0014919550401609636,
                                            -0.00032248374107355797, 0.00024112718516440545};
constexpr std::array<double, 23> kErfc64 = {
    0.25300805826972966,    -0.1356211061245812,     -0.0475622943534507,     0.12964515870276203,
    -0.11927366341531179,   0.06830802734394434,     -0.02377051491853638,    0.002529391816335117,
    0.0018886903564002055,  -0.0007798322714918795,  -0.00010515976008945177, 0.00012509932758636072,
    4.9491714476033325e-06, -2.0100376113106087e-05, -7.300550882569987e-07,  3.471616676593574e-06,
    3.52693258412998e-07,   -6.146346341425417e-07,  -1.3432312409451292e-07, 9.877438074940672e-08,
    3.42329907978226e-08,   -1.0659628807393203e-08, -4.325370719107278e-09};

V ErfNear(V a) {
  const V z = a * a;
  return a + a * (a.format().wide() ? PolynomialIn(z, kErf64) : PolynomialIn(z, kErf32));
}

// erfc of a >= 0.5. e^(-a^2) is taken in two factors, the first of a rounded so that its square is exact.
V ErfcFar(V a) {
  const Format& f = a.format();
  const V limit = Real(a, 10.5, 28), x = Select(a > limit, limit, a);
  const V k = Real(a, 2, 3), t = Divide(x - k, x + k);
  const V scaled = 1.0 + (f.wide() ? PolynomialIn(t, kErfc64) : PolynomialIn(t, kErfc32));
  const V high = FromBits(Bits(x) & Word(x, ~uint64_t{0} << (f.fraction / 2 + 1)));
  const V rest = Exp((high - x) * (high + x));
  return Exp(-high * high) * (Divide(scaled, 1.0 + x * 2.0) * rest);
}

}  // namespace

V Erf(V x) {
  const V a = Abs(x), value = Select(a < 1.0, ErfNear(a), 1.0 - ErfcFar(a));
  return Select(IsNan(x) | (x == 0.0), x, WithSign(value, x));
}

V Erfc(V x) {
  const V a = Abs(x), far = ErfcFar(a);
  const V value = Select(a < 0.5, 1.0 - WithSign(ErfNear(a), x), Select(x < 0.0, 2.0 - far, far));
  return Select(IsNan(x), x, value);
}

}  // namespace agc::expand
