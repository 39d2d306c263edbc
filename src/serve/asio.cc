// The compiled parts of Boost.Asio and Boost.Beast: in headers they would cost every file seconds to compile.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
